// If: one of two bodies over the captures, as a bool says; the other one does not run.

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "ir/control.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const OpDef& op = context.op;
  if (context.operands[0].rank() != 0) return context.ShapeError(0, "bool[]");
  std::vector<TensorType> results;
  for (const int branch : {kThen, kElse}) {
    const Graph& body = *context.bodies[branch];
    QUERN_RETURN_IF_ERROR(CheckBodyInputs(op, op.bodies[branch], body, context.operands.subspan(1)));
    const std::vector<TensorType> types = OutputTypes(body);
    if (branch == kThen) results = types;
    if (types.empty() || types.size() != results.size()) {
      return context.Error(DiagnosticCode::kShapeMismatch, absl::StrCat(op.bodies[branch], "'s number of outputs"),
                           results.empty() ? "1 or more" : absl::StrCat(results.size()), absl::StrCat(types.size()));
    }
    for (size_t r = 0; r < types.size(); ++r) {
      if (types[r] != results[r]) return OtherType(op, absl::StrFormat("output %u of else", r), types[r], results[r]);
    }
  }
  return results;
}

Status Reference(RefContext& context) {
  const int branch = context.operands[0]->data[0] != 0 ? kThen : kElse;
  QUERN_ASSIGN(context.results, context.run(branch, context.operands.subspan(1)));
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_if() {
  static const OpDef* const op = Make({
      .name = "If",
      .doc = "what `then` makes of the captures where pred is true, else what `else` makes; the other one does not run",
      .kind = OpKind::kControl,
      .operands = {{.name = "pred", .kind = OperandKind::kBool, .own_dtype = true},
                   {.name = "captures", .optional = true, .variadic = true, .own_dtype = true}},
      .bodies = {"then", "else"},
      .infer = Infer,
      .reference = Reference,
      .onnx = "If",
  });
  return *op;
}

bool IsBranch(const Node& node) { return node.op == &Op_if(); }

}  // namespace quern::ir
