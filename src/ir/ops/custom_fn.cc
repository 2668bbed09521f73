// CustomFn: a function of the caller's own in ops, with derivatives of its own: what `body` makes of the operands. It
// takes the body's place before anything is compiled; `vjp` and `jvp` are for who differentiates the graph.
//
//   %3 = CustomFn(%0, %1) : f32[8]
//     body graph body { ... }   # Inputs: the operands
//     vjp graph vjp { ... }     # operands, results, gradients of the float results; makes those of the float operands
//     jvp graph jvp { ... }     # operands, results, tangents of the float operands; makes those of the float results
// A jvp without a vjp stands behind a vjp that is empty.

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "ir/composite.h"
#include "ir/control.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

enum : int { kBody, kVjp, kJvp };

// Those of float dtypes.
std::vector<TensorType> Floats(std::span<const TensorType> types) {
  std::vector<TensorType> floats;
  for (const TensorType& type : types) {
    if (IsFloat(type.dtype)) floats.push_back(type);
  }
  return floats;
}

Status CheckOutputs(const InferContext& context, int body, const std::vector<TensorType>& wanted) {
  const std::vector<TensorType> made = OutputTypes(*context.bodies[body]);
  const char* name = context.op.bodies[body];
  if (made.size() != wanted.size()) {
    return context.Error(DiagnosticCode::kShapeMismatch, absl::StrCat(name, "'s number of outputs"),
                         absl::StrCat(wanted.size()), absl::StrCat(made.size()));
  }
  for (size_t r = 0; r < made.size(); ++r) {
    if (made[r] != wanted[r])
      return OtherType(context.op, absl::StrFormat("output %u of %s", r, name), made[r], wanted[r]);
  }
  return absl::OkStatus();
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const OpDef& op = context.op;
  QUERN_RETURN_IF_ERROR(CheckBodyInputs(op, op.bodies[kBody], *context.bodies[kBody], context.operands));
  const std::vector<TensorType> results = OutputTypes(*context.bodies[kBody]);
  if (results.empty())
    return context.Error(DiagnosticCode::kShapeMismatch, "body's number of outputs", "1 or more", "0");
  for (size_t r = 0; r < results.size(); ++r) {
    if (IsBlock(results[r].dtype)) {
      return context.Error(DiagnosticCode::kUnsupported, absl::StrFormat("output %u of body", r), "a scalar dtype",
                           results[r].ToString());
    }
  }
  const std::vector<TensorType> of_operands = Floats(context.operands), of_results = Floats(results);
  for (size_t b = kVjp; b < context.bodies.size(); ++b) {
    const int body = static_cast<int>(b);
    if (body == kVjp && context.bodies[b]->nodes().empty()) continue;
    std::vector<TensorType> inputs(context.operands.begin(), context.operands.end());
    inputs.insert(inputs.end(), results.begin(), results.end());
    const std::vector<TensorType>& given = body == kVjp ? of_results : of_operands;
    inputs.insert(inputs.end(), given.begin(), given.end());
    QUERN_RETURN_IF_ERROR(CheckBodyInputs(op, op.bodies[b], *context.bodies[b], inputs));
    QUERN_RETURN_IF_ERROR(CheckOutputs(context, body, body == kVjp ? of_operands : of_results));
  }
  return results;
}

Status Reference(RefContext& context) {
  QUERN_ASSIGN(context.results, context.run(kBody, context.operands));
  return absl::OkStatus();
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  return AddBody(graph, node.body(kBody), inputs, origin);
}

}  // namespace

const OpDef& Op_custom_fn() {
  static const OpDef* const op = Make({
      .name = "CustomFn",
      .doc = "what `body` makes of the operands; `vjp` and `jvp`, where they are, are its derivatives",
      .kind = OpKind::kComposite,
      .operands = {{.name = "operands", .optional = true, .variadic = true, .own_dtype = true}},
      .bodies = {"body", "vjp", "jvp"},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
  });
  return *op;
}

size_t OptionalBodies(const OpDef& op) { return &op == &Op_custom_fn() ? kJvp - kBody : 0; }

}  // namespace quern::ir
