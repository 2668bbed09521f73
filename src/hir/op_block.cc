#include "hir/op_block.h"

#include "base/check.h"

namespace quern::hir {

StatusOr<std::vector<TensorType>> InferOpBlock(const InferContext& c) {
  const ir::OpDef& op = *ir::FindOp(c.block.name);
  std::vector<TensorType> types;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    if (c.operands[i] == nullptr) continue;
    // Operands of ops are absent at the end alone.
    if (types.size() != i)
      return c.Error(DiagnosticCode::kUnknownOperand, op.operands[types.size()].name, "", "absent before others");
    types.push_back(*c.operands[i]);
  }
  Attributes attributes = c.attributes;
  std::vector<ir::ExtentConstraint> constraints;  // found again when lowered
  StatusOr<std::vector<TensorType>> results = ir::InferResults(op, types, attributes, c.symbols, &constraints);
  if (!results.ok()) return WithProvenance(results.status(), c.label);
  return results;
}

StatusOr<std::vector<ir::Value>> LowerOpBlock(LowerContext& c, std::vector<ir::Value> operands) {
  size_t given = 0;
  while (given < operands.size() && operands[given].node >= 0) ++given;
  operands.resize(given);
  return c.Finish(c.Results(c.node.block->name, std::move(operands), c.attributes()));
}

BlockDef OpBlock(const char* op, const char* label, const char* carry_label) {
  const ir::OpDef* const def = ir::FindOp(op);
  QUERN_CHECK(def != nullptr);
  BlockDef block = {.name = def->name,
                    .doc = def->doc,
                    .label = label,
                    .carry_label = carry_label,
                    .attributes = def->attributes,
                    .infer = InferOpBlock,
                    .lower = [](LowerContext& c) { return LowerOpBlock(c, c.inputs); }};
  for (const ir::OperandDef& operand : def->operands)
    block.operands.push_back({operand.name, operand.kind, operand.optional, operand.shape});
  return block;
}

}  // namespace quern::hir
