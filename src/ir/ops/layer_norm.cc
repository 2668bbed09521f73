// LayerNorm: (x - mean) gamma / sqrt(variance + eps) + beta over the dimensions from `axis` on, with the biased
// variance.

#include "ir/norm.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckNorm(context, 1, context.attributes.Int("axis")));
  return std::vector<TensorType>{context.operands[0]};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Value x = e.Wide(inputs[0]);
  const Value y = ScaleAndShift(
      e, Normal(e, x, NormAxes(node.attributes.Int("axis"), node.results[0].dims.size()), node.attributes.Float("eps")),
      inputs.subspan(1));
  return e.Finish({e.Stored(y, node.results[0].dtype)});
}

Status Reference(RefContext& context) {
  ReferenceNorm(*context.operands[0], std::span(context.operands).subspan(1), /*centred=*/true,
                context.node.attributes.Float("eps"), context.results[0], context.node.attributes.Int("axis"));
  return absl::OkStatus();
}

Status Magnitude(RefContext& context) {
  MagnitudeOfNorm(*context.operands[0], std::span(context.operands).subspan(1), /*centred=*/true,
                  context.node.attributes.Float("eps"), context.results[0], context.node.attributes.Int("axis"));
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_layer_norm() {
  static const OpDef* const op = Make({
      .name = "LayerNorm",
      .doc = "(x - mean) gamma / sqrt(variance + eps) + beta over the dimensions from `axis` on",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[.., N..]"},
                   {.name = "gamma", .kind = OperandKind::kFloat, .shape = "[N..]"},
                   {.name = "beta", .kind = OperandKind::kFloat, .shape = "[N..]", .optional = true}},
      .attributes = {{.name = "eps", .kind = AttrKind::kFloat, .default_value = 1e-5}, NormAxisAttribute()},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude = Magnitude,
      .onnx = "LayerNormalization",
      .examples = {{{"f32[2, 3]", "f32[3]"}},
                   {{"f32[2, 3, 5, 7]", "f32[3, 5, 7]", "f32[3, 5, 7]"}, {{"axis", int64_t{1}}}},
                   {{"f16[S, 3, 5]", "f16[3, 5]"}, {{"axis", int64_t{-2}}}}},
  });
  return *op;
}

}  // namespace quern::ir
