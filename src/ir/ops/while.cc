// While: the body over the carries, again and again for as long as cond holds.

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "ir/control.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const OpDef& op = context.op;
  const int64_t operands = static_cast<int64_t>(context.operands.size());
  const int64_t asked = context.attributes.Int("carries"), carries = asked < 0 ? operands : asked;
  if (carries < 1 || carries > operands)
    return context.AttributeError("carries", absl::StrFormat("1 to %d, or -1", operands));
  if (context.attributes.Int("max") < 0) return context.AttributeError("max", "0 or more");
  for (const int b : {kWhileCond, kWhileBody})
    QUERN_RETURN_IF_ERROR(CheckBodyInputs(op, op.bodies[b], *context.bodies[b], context.operands));
  const std::vector<TensorType> cond = OutputTypes(*context.bodies[kWhileCond]);
  if (cond.size() != 1) {
    return context.Error(DiagnosticCode::kShapeMismatch, "cond's number of outputs", "1", absl::StrCat(cond.size()));
  }
  if (cond[0] != TensorType{DType::kBool, {}}) return OtherType(op, "output 0 of cond", cond[0], {DType::kBool, {}});
  std::vector<TensorType> next = OutputTypes(*context.bodies[kWhileBody]);
  if (static_cast<int64_t>(next.size()) != carries) {
    return context.Error(DiagnosticCode::kShapeMismatch, "body's number of outputs", absl::StrCat(carries),
                         absl::StrCat(next.size()));
  }
  for (size_t c = 0; c < next.size(); ++c) {
    if (next[c] != context.operands[c])
      return OtherType(op, absl::StrFormat("output %u of body", c), next[c], context.operands[c]);
  }
  return next;
}

Status Reference(RefContext& context) {
  const size_t carries = context.results.size();
  const int64_t most = context.node.attributes.Int("max");
  std::vector<RefTensor>& now = context.results;
  for (size_t c = 0; c < carries; ++c) now[c] = *context.operands[c];
  std::vector<const RefTensor*> inputs(context.operands.begin(), context.operands.end());
  for (size_t c = 0; c < carries; ++c) inputs[c] = &now[c];
  for (int64_t trip = 0;; ++trip) {
    QUERN_ASSIGN(const std::vector<RefTensor> more, context.run(kWhileCond, inputs));
    if (more[0].data[0] == 0) return absl::OkStatus();
    if (most > 0 && trip == most)
      return absl::OutOfRangeError(absl::StrFormat("While: more than %d trips are needed", most));
    QUERN_ASSIGN(std::vector<RefTensor> next, context.run(kWhileBody, inputs));
    for (size_t c = 0; c < carries; ++c) now[c] = std::move(next[c]);
  }
}

}  // namespace

const OpDef& Op_while() {
  static const OpDef* const op = Make({
      .name = "While",
      .doc =
          "carries, as `body` makes them of carries and captures for as long as `cond` of the same is true; after no "
          "trip, the operands",
      .kind = OpKind::kControl,
      .operands = {{.name = "carries and captures", .variadic = true, .own_dtype = true}},
      .attributes = {{.name = "carries",
                      .kind = AttrKind::kInt,
                      .default_value = AttrValue(int64_t{-1}),
                      .doc = "how many of the operands, from the first; -1: all"},
                     {.name = "max",
                      .kind = AttrKind::kInt,
                      .default_value = AttrValue(int64_t{0}),
                      .doc = "trips, more than which are an error of the run; 0: any number"}},
      .bodies = {"cond", "body"},
      .infer = Infer,
      .reference = Reference,
      .onnx = "Loop",
  });
  return *op;
}

}  // namespace quern::ir
