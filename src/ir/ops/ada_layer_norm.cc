// AdaLayerNorm: LN(x) (1 + scale) + shift, where LN is a LayerNorm over the last axis without weights of its own.

#include <cmath>

#include "ir/norm.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  if (x.rank() < 1) return context.ShapeError(0, "rank 1 or more");
  for (const int i : {1, 2}) {
    if (!context.BroadcastsTo(context.operands[i].dims, x.dims))
      return context.ShapeError(i, absl::StrCat("one that broadcasts to ", ToString(x.dims)));
  }
  return std::vector<TensorType>{x};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Value x = e.Wide(inputs[0]);
  const Value normal = Normal(e, x, {-1}, node.attributes.Float("eps"));
  const Value scale = e.Add("Add", {e.Wide(inputs[1]), e.Scalar(1, graph.type(x).dtype)});
  const Value y = e.Add("Add", {e.Add("Mul", {normal, scale}), e.Wide(inputs[2])});
  return e.Finish({e.Stored(y, node.results[0].dtype)});
}

// `combine` makes an element of x, the mean, the deviation, scale and shift.
template <typename Combine>
Status Each(RefContext& context, const Combine& combine) {
  const RefTensor &x = *context.operands[0], &scale = *context.operands[1], &shift = *context.operands[2];
  RefTensor& y = context.results[0];
  const double eps = context.node.attributes.Float("eps");
  std::vector<int64_t> index(y.dims.size());
  ForEachLine(x, -1, [&](const std::vector<int64_t>& line) {
    const double n = static_cast<double>(line.size());
    double mean = 0, variance = 0;
    for (const int64_t at : line) mean += x.data[at] / n;
    for (const int64_t at : line) variance += (x.data[at] - mean) * (x.data[at] - mean) / n;
    for (const int64_t at : line) {
      y.data[at] = combine(x.data[at], mean, std::sqrt(variance + eps), scale.At(index), shift.At(index));
      NextIndex(y.dims, index);
    }
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_ada_layer_norm() {
  static const OpDef* const op = Make({
      .name = "AdaLayerNorm",
      .doc = "(x - mean) (1 + scale) / sqrt(variance + eps) + shift over the last axis",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[.., N]"},
                   {.name = "scale", .kind = OperandKind::kFloat, .shape = "broadcasts to x"},
                   {.name = "shift", .kind = OperandKind::kFloat, .shape = "broadcasts to x"}},
      .attributes = {{.name = "eps", .kind = AttrKind::kFloat, .default_value = 1e-5}},
      .infer = Infer,
      .reference =
          [](RefContext& c) {
            return Each(c, [&](double x, double mean, double deviation, double scale, double shift) {
              return RoundTo(c.results[0].dtype, (x - mean) / deviation * (1 + scale) + shift);
            });
          },
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude =
          [](RefContext& c) {
            return Each(c, [](double x, double mean, double deviation, double scale, double shift) {
              return (std::fabs(x) + std::fabs(mean)) / deviation * (1 + std::fabs(scale)) + std::fabs(shift);
            });
          },
      .examples = {{{"f32[2, 5, 7]", "f32[2, 1, 7]", "f32[2, 1, 7]"}},
                   {{"f32[S, 11]", "f32[11]", "f32[1, 11]"}, {{"eps", 0.01}}},
                   {{"f16[3, 5]", "f16[3, 5]", "f16[]"}}},
  });
  return *op;
}

}  // namespace quern::ir
