// FakeQuantizeLSQBackwardScale: the sum of psi(x / s) dy over what shares a scale, where psi(z) is round(z) - z among
// the levels, and beyond them the last one of that side.

#include <cmath>

#include "ir/fake_quantise.h"
#include "ir/linear_quantise.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckLevels(context, 1, 2));
  return std::vector<TensorType>{context.operands[1]};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const TensorType type = graph.type(inputs[0]);
  const Value x = e.Wide(inputs[0]), dy = e.Wide(inputs[2]);
  if (!e.ok()) return e.Finish({});
  const DType dtype = e.type(x).dtype;
  const Value levels = e.Scalar(LevelsOf(node.attributes), dtype);
  const Value z = e.Add("Div", {x, UsableScale(e, inputs[1], type, node.attributes)});
  const Value inside = e.Add("Sub", {e.Add("Round", {z}), z}), beyond = e.Add("Mul", {e.Add("Sign", {z}), levels});
  const Value psi = e.Add("Where", {e.Add("Le", {e.Add("Abs", {z}), levels}), inside, beyond});
  const Value sum = e.Reduced("sum", e.Add("Mul", {psi, dy}), SharedAxes(type.dims.size(), node.attributes));
  return e.Finish({e.Sized(sum, node.results[0].dims)});
}

// With `sizes` terms count by their size, and what a difference is made of counts each.
void Sums(RefContext& context, bool sizes) {
  const RefTensor &x = *context.operands[0], &scale = *context.operands[1], &dy = *context.operands[2];
  const double levels = LevelsOf(context.node.attributes);
  ForEachScaled(x, context.node.attributes, [&](int64_t at, int64_t s) {
    const double z = QuotientIn(x.dtype, x.data[at], UsableScale(scale.data[s]));
    double psi = std::nearbyint(z) - z;
    if (sizes) psi = 2 * std::fabs(z);
    if (!(std::fabs(z) <= levels)) psi = z > 0 ? levels : z < 0 ? -levels : z;
    const double term = psi * dy.data[at];
    context.results[0].data[s] += sizes ? std::fabs(term) : term;
  });
}

}  // namespace

const OpDef& Op_fake_quantize_lsq_backward_scale() {
  static const OpDef* const op = Make({
      .name = "FakeQuantizeLSQBackwardScale",
      .doc = "the gradient of the scale of a FakeQuantizeLSQ",
      .kind = OpKind::kComposite,
      .operands = LevelOperands(/*dy=*/true),
      .attributes = LevelAttributes(),
      .infer = Infer,
      .reference = [](RefContext& c) -> Status { return Sums(c, false), absl::OkStatus(); },
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude = [](RefContext& c) -> Status { return Sums(c, true), absl::OkStatus(); },
      .examples = {{{"f32[3, 7]", "f32[]", "f32[3, 7]"}},
                   {{"f32[2, 5, 3]", "f32[5]", "f32[2, 5, 3]"}, {{"axis", int64_t{1}}, {"bits", int64_t{2}}}},
                   {{"f16[S, 11]", "f32[S]", "f16[S, 11]"}, {{"axis", int64_t{0}}, {"bits", int64_t{4}}}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
