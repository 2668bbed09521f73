// Mir(op): one MIR op verbatim, composites and regions included. Operands and attributes are those of the op.

#include "base/check.h"
#include "hir/block.h"

namespace quern::hir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  if (c.node.body != nullptr) {
    std::vector<TensorType> results;
    for (const ir::Value& output : c.node.body->outputs) results.push_back(c.node.body->type(output));
    return results;
  }
  if (c.node.op == nullptr) return ToStatus({DiagnosticCode::kUnknownOp, "(no op)", "", "", "", c.label});
  const ir::OpDef& op = *c.node.op;
  std::vector<TensorType> types;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    if (c.operands[i] == nullptr) {
      return ToStatus(
          {DiagnosticCode::kUnknownOperand, op.name, absl::StrFormat("operand %u", i), "", "absent", c.label});
    }
    types.push_back(*c.operands[i]);
  }
  auto infer = [&]() -> StatusOr<std::vector<TensorType>> {
    QUERN_RETURN_IF_ERROR(ir::CheckOperands(op, types));
    Attributes attributes = c.attributes;
    QUERN_RETURN_IF_ERROR(ir::CheckAttributes(op, attributes, /*fill_defaults=*/true));
    std::vector<ir::ExtentConstraint> constraints;  // found again when lowered
    return op.infer({types, attributes, c.symbols, &constraints});
  };
  StatusOr<std::vector<TensorType>> results = infer();
  if (results.ok()) return results;
  return Status(results.status().code(),
                absl::StrFormat("%s (in %s)", std::string(results.status().message()), c.label));
}

StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  StatusOr<ir::Value> value =
      c.node.body != nullptr ? c.graph.AddRegion(c.attributes().String("family"), c.inputs, c.node.body, c.origin())
                             : c.graph.Add(*c.node.op, c.inputs, c.attributes(), c.origin());
  QUERN_RETURN_IF_ERROR(value.status());
  std::vector<ir::Value> results;
  for (int r = 0; r < static_cast<int>(c.node.results.size()); ++r) results.push_back({value->node, r});
  return results;
}

}  // namespace

const BlockDef& Block_mir() {
  static const BlockDef* const block =
      Make({.name = "Mir", .doc = "one MIR op verbatim", .label = "mir", .infer = Infer, .lower = Lower});
  return *block;
}

}  // namespace quern::hir
