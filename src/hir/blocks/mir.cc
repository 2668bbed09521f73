// Mir(op): one MIR op verbatim, composites and regions included. Operands and attributes are those of the op.

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "hir/block.h"
#include "ir/control.h"

namespace quern::hir {
namespace {

// The body's results, where its Inputs are the operands.
StatusOr<std::vector<TensorType>> InferRegion(const InferContext& c) {
  const ir::Graph& body = *c.node.bodies[0];
  const std::vector<int> inputs = body.Inputs();
  if (inputs.size() != c.operands.size()) {
    return ToStatus({DiagnosticCode::kInputCount, c.node.op->name, "", absl::StrCat(inputs.size()),
                     absl::StrCat(c.operands.size()), c.label});
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& expected = body.node(inputs[i]).results[0];
    if (c.operands[i] != nullptr && *c.operands[i] == expected) continue;
    return ToStatus({DiagnosticCode::kShapeMismatch, c.node.op->name, absl::StrCat("operand ", i), expected.ToString(),
                     c.operands[i] == nullptr ? "absent" : c.operands[i]->ToString(), c.label});
  }
  return ir::OutputTypes(body);
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  const ir::OpDef& op = *c.node.op;
  if (op.kind == ir::OpKind::kRegion) return InferRegion(c);
  std::vector<TensorType> types;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    if (c.operands[i] == nullptr) {
      return ToStatus({DiagnosticCode::kUnknownOperand, op.name, ir::OperandName(op, i), "", "absent", c.label});
    }
    types.push_back(*c.operands[i]);
  }
  Attributes attributes = c.attributes;
  std::vector<ir::ExtentConstraint> constraints;  // found again when lowered
  StatusOr<std::vector<TensorType>> results =
      ir::InferResults(op, types, attributes, c.symbols, &constraints, c.node.bodies, c.node.results);
  if (!results.ok()) return WithProvenance(results.status(), c.label);
  return results;
}

StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  StatusOr<ir::Value> value =
      c.node.op->kind == ir::OpKind::kRegion
          ? c.graph.AddRegion(c.attributes().String("family"), c.inputs, c.node.bodies[0], c.origin())
          : c.graph.Add(*c.node.op, c.inputs, c.attributes(), c.origin(), c.node.bodies);
  QUERN_RETURN_IF_ERROR(value.status());
  std::vector<ir::Value> results;
  for (int r = 0; r < static_cast<int>(c.node.results.size()); ++r) results.push_back({value->node, r});
  return results;
}

}  // namespace

const BlockDef& Block_mir() {
  static const BlockDef* const block =
      Make({.name = "Mir", .doc = "one MIR op verbatim", .label = "", .needs = "op", .infer = Infer, .lower = Lower});
  return *block;
}

}  // namespace quern::hir
