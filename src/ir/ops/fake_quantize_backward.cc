// FakeQuantizeBackward: what of dy goes on to the x of a FakeQuantize of that scale, s, of n levels either way.
//
//   identity   all                       clipped    all where |x / s| <= n, nothing beyond
//   tanh       1 - tanh(x / (s n))^2     hardtanh   as clipped, but falling to nothing from n to 2 n

#include <algorithm>
#include <cmath>

#include "ir/fake_quantise.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckLevels(context, 1, 2));
  return std::vector<TensorType>{context.operands[0]};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::string& ste = node.attributes.String("ste");
  if (ste == "identity") return e.Finish({inputs[2]});
  const TensorType type = graph.type(inputs[0]);
  const Value x = e.Wide(inputs[0]), dy = e.Wide(inputs[2]);
  if (!e.ok()) return e.Finish({});
  const DType dtype = e.type(x).dtype;
  const double levels = LevelsOf(node.attributes);
  const Value z = e.Add("Div", {x, UsableScale(e, inputs[1], type, node.attributes)});
  Value y;
  if (ste == "clipped") {
    y = e.Add("Where", {e.Add("Le", {e.Add("Abs", {z}), e.Scalar(levels, dtype)}), dy, e.Scalar(0, dtype)});
  } else if (ste == "tanh") {
    const Value t = e.Add("Tanh", {e.Add("Div", {z, e.Scalar(levels, dtype)})});
    y = e.Add("Mul", {dy, e.Add("Sub", {e.Scalar(1, dtype), e.Add("Mul", {t, t})})});
  } else {
    const Value left = e.Add("Sub", {e.Scalar(2, dtype), e.Add("Div", {e.Add("Abs", {z}), e.Scalar(levels, dtype)})});
    y = e.Add("Mul", {dy, e.Add("Clamp", {left, e.Scalar(0, dtype), e.Scalar(1, dtype)})});
  }
  return e.Finish({e.Stored(y, type.dtype)});
}

Status Reference(RefContext& context) {
  const RefTensor &x = *context.operands[0], &scale = *context.operands[1], &dy = *context.operands[2];
  RefTensor& y = context.results[0];
  const std::string& ste = context.node.attributes.String("ste");
  const double levels = LevelsOf(context.node.attributes);
  ForEachScaled(x, context.node.attributes, [&](int64_t at, int64_t s) {
    const double z = x.data[at] / UsableScale(scale.data[s]), g = dy.data[at];
    double result = g;
    if (ste == "clipped") result = std::fabs(z) <= levels ? g : 0;
    if (ste == "tanh") result = g * (1 - std::tanh(z / levels) * std::tanh(z / levels));
    if (ste == "hardtanh") result = g * (std::isnan(z) ? z : std::clamp(2 - std::fabs(z) / levels, 0.0, 1.0));
    y.data[at] = RoundTo(y.dtype, result);
  });
  return absl::OkStatus();
}

// What is taken from 1 or 2 leaves roundings of these.
Status Magnitude(RefContext& context) {
  const RefTensor& dy = *context.operands[2];
  for (size_t i = 0; i < dy.data.size(); ++i) context.results[0].data[i] = 2 * std::fabs(dy.data[i]);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_fake_quantize_backward() {
  static const OpDef* const op = Make({
      .name = "FakeQuantizeBackward",
      .doc = "what of dy goes on to the x of a FakeQuantize of that scale",
      .kind = OpKind::kComposite,
      .operands = LevelOperands(/*dy=*/true),
      .attributes = LevelAttributes({{.name = "ste",
                                      .kind = AttrKind::kString,
                                      .default_value = std::string("identity"),
                                      .choices = {"identity", "clipped", "tanh", "hardtanh"}}}),
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .magnitude = Magnitude,
      .examples = {{{"f32[3, 7]", "f32[]", "f32[3, 7]"}},
                   {{"f32[2, 5, 3]", "f32[5]", "f32[2, 5, 3]"},
                    {{"axis", int64_t{1}}, {"bits", int64_t{2}}, {"ste", std::string("clipped")}}},
                   {{"f16[S, 11]", "f32[S]", "f16[S, 11]"}, {{"axis", int64_t{0}}, {"ste", std::string("tanh")}}},
                   {{"f32[13]", "f32[]", "f32[13]"}, {{"bits", int64_t{4}}, {"ste", std::string("hardtanh")}}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
