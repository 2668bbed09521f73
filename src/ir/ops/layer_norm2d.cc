// LayerNorm2d: a LayerNorm over the channels of each pixel, which are dimension 1.

#include "ir/norm.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckChannels(context, 1, 2));
  return std::vector<TensorType>{context.operands[0]};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const int rank = node.results[0].rank();
  const Value x = e.Wide(inputs[0]);
  const Value normal = Normal(e, x, {1}, node.attributes.Float("eps"));
  const Value scaled = e.Add("Mul", {normal, ByChannel(e, inputs[1], rank)});
  return e.Finish({e.Stored(e.Add("Add", {scaled, ByChannel(e, inputs[2], rank)}), node.results[0].dtype)});
}

GroupOf Groups(const RefContext& context) {
  const std::vector<int64_t> dims = context.operands[0]->dims;
  return [=](std::span<const int64_t> index) {
    int64_t pixel = 0;
    for (size_t d = 0; d < dims.size(); ++d) pixel = d == 1 ? pixel : pixel * dims[d] + index[d];
    return pixel;
  };
}

}  // namespace

const OpDef& Op_layer_norm2d() {
  static const OpDef* const op = Make({
      .name = "LayerNorm2d",
      .doc = "(x - mean) gamma / sqrt(variance + eps) + beta over the channels of each pixel",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[N, C, ..]"},
                   {.name = "gamma", .kind = OperandKind::kFloat, .shape = "[C]"},
                   {.name = "beta", .kind = OperandKind::kFloat, .shape = "[C]"}},
      .attributes = {{.name = "eps", .kind = AttrKind::kFloat, .default_value = 1e-5}},
      .infer = Infer,
      .reference = [](RefContext& c) -> Status { return ReferenceChannelNorm(c, Groups(c)), absl::OkStatus(); },
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude = [](RefContext& c) -> Status { return MagnitudeOfChannelNorm(c, Groups(c)), absl::OkStatus(); },
      .examples = {{{"f32[2, 7, 5, 3]", "f32[7]", "f32[7]"}},
                   {{"f32[S, 4]", "f32[4]", "f32[4]"}},
                   {{"f16[1, 5, S]", "f16[5]", "f16[5]"}, {{"eps", 0.01}}}},
  });
  return *op;
}

}  // namespace quern::ir
