// InstanceNorm: a LayerNorm over the elements of each channel, scaled and shifted by channel.

#include "ir/norm.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckChannels(context, 1, 3));
  return std::vector<TensorType>{context.operands[0]};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const int rank = node.results[0].rank();
  const Value x = e.Wide(inputs[0]);
  std::vector<int64_t> axes;
  for (int d = 2; d < rank; ++d) axes.push_back(d);
  const Value normal = Normal(e, x, axes, node.attributes.Float("eps"));
  const Value scaled = e.Add("Mul", {normal, ByChannel(e, inputs[1], rank)});
  return e.Finish({e.Stored(e.Add("Add", {scaled, ByChannel(e, inputs[2], rank)}), node.results[0].dtype)});
}

GroupOf Groups(const RefContext& context) {
  const int64_t channels = context.operands[0]->dims[1];
  return [=](std::span<const int64_t> index) { return index[0] * channels + index[1]; };
}

}  // namespace

const OpDef& Op_instance_norm() {
  static const OpDef* const op = Make({
      .name = "InstanceNorm",
      .doc = "(x - mean) gamma / sqrt(variance + eps) + beta over each channel",
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
      .onnx = "InstanceNormalization",
      .examples = {{{"f32[2, 3, 5, 7]", "f32[3]", "f32[3]"}},
                   {{"f32[2, 3, S]", "f32[3]", "f32[3]"}, {{"eps", 0.01}}},
                   {{"bf16[1, 2, 17]", "bf16[2]", "bf16[2]"}}},
  });
  return *op;
}

}  // namespace quern::ir
