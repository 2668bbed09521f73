// GroupNorm: a LayerNorm over the elements of each group of channels, scaled and shifted by channel.

#include "ir/norm.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckChannels(context, 1, 2));
  const TensorType& x = context.operands[0];
  if (x.rank() == static_cast<int>(kMostDims))
    return context.UnsupportedError(0, absl::StrFormat("rank 2 to %u", kMostDims - 1));
  const int64_t groups = context.attributes.Int("groups");
  if (groups < 1 || !x.dims[1].DividedBy(Extent(groups)))
    return context.AttributeError("groups", absl::StrFormat("a divisor of %s", x.dims[1].ToString()));
  return std::vector<TensorType>{context.operands[0]};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const int rank = node.results[0].rank();
  const Value x = e.Wide(inputs[0]);
  // [N, C, ..] as [N, groups, C / groups, ..].
  const std::vector<Extent>& dims = node.results[0].dims;
  const Extent groups(node.attributes.Int("groups"));
  std::vector<Extent> grouped = {dims[0], groups, *dims[1].DividedBy(groups)};
  grouped.insert(grouped.end(), dims.begin() + 2, dims.end());
  std::vector<int64_t> axes;
  for (int d = 2; d <= rank; ++d) axes.push_back(d);
  const Value normal = e.Sized(Normal(e, e.Sized(x, std::move(grouped)), axes, node.attributes.Float("eps")), dims);
  const Value scaled = e.Add("Mul", {normal, ByChannel(e, inputs[1], rank)});
  return e.Finish({e.Stored(e.Add("Add", {scaled, ByChannel(e, inputs[2], rank)}), node.results[0].dtype)});
}

GroupOf Groups(const RefContext& context) {
  const int64_t groups = context.node.attributes.Int("groups"), each = context.operands[0]->dims[1] / groups;
  return [=](std::span<const int64_t> index) { return index[0] * groups + index[1] / each; };
}

}  // namespace

const OpDef& Op_group_norm() {
  static const OpDef* const op = Make({
      .name = "GroupNorm",
      .doc = "(x - mean) gamma / sqrt(variance + eps) + beta over each group of channels",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[N, C, ..]"},
                   {.name = "gamma", .kind = OperandKind::kFloat, .shape = "[C]"},
                   {.name = "beta", .kind = OperandKind::kFloat, .shape = "[C]"}},
      .attributes = {{.name = "groups", .kind = AttrKind::kInt, .doc = "divides C"},
                     {.name = "eps", .kind = AttrKind::kFloat, .default_value = 1e-5}},
      .infer = Infer,
      .reference = [](RefContext& c) -> Status { return ReferenceChannelNorm(c, Groups(c)), absl::OkStatus(); },
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude = [](RefContext& c) -> Status { return MagnitudeOfChannelNorm(c, Groups(c)), absl::OkStatus(); },
      .onnx = "GroupNormalization",
      .examples = {{{"f32[2, 6, 5, 3]", "f32[6]", "f32[6]"}, {{"groups", int64_t{3}}}},
                   {{"f32[S, 4]", "f32[4]", "f32[4]"}, {{"groups", int64_t{2}}}},
                   {{"f16[1, 5, S]", "f16[5]", "f16[5]"}, {{"groups", int64_t{1}}, {"eps", 0.01}}}},
  });
  return *op;
}

}  // namespace quern::ir
