// MaxPoolBackward: dy added where the window of a Pool of maxima had its first largest element, in row-major order.

#include <cmath>

#include "ir/max_places.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_ASSIGN(const TensorType y, InferMaxPool(context));
  if (!context.Equal(context.operands[1].dims, y.dims)) return context.ShapeError(1, ToString(y.dims));
  return std::vector<TensorType>{context.operands[0]};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::vector<Extent> dims = graph.type(inputs[0]).dims, pooled = graph.type(inputs[1]).dims;
  Extent count(1), elements(1);
  for (size_t d = 2; d < dims.size(); ++d) {
    count = count * pooled[d];
    elements = elements * dims[d];
  }
  const std::vector<Extent> lines = {dims[0] * dims[1], count};
  const Value chosen = e.Sized(FirstLargest(e, node.attributes, inputs[0], std::span(pooled).subspan(2)), lines);
  const Value dy = e.Sized(e.Wide(inputs[1]), lines);
  if (!e.ok()) return e.Finish({});
  const Value zeros =
      e.Add("Expand", {e.Scalar(0, e.type(dy).dtype)}, {{"shape", std::vector<Extent>{lines[0], elements}}});
  const Value sums =
      e.Add("ScatterElements", {zeros, chosen, dy}, {{"axis", int64_t{1}}, {"reduction", std::string("add")}});
  return e.Finish({e.Stored(e.Sized(sums, dims), node.results[0].dtype)});
}

template <bool kSizes>
Status Sum(RefContext& context) {
  const RefTensor& dy = *context.operands[1];
  RefTensor& dx = context.results[0];
  ForEachFirstLargest(context.node.attributes, *context.operands[0], dy.dims, [&](int64_t place, int64_t element) {
    dx.data[element] += kSizes ? std::fabs(dy.data[place]) : dy.data[place];
  });
  for (double& value : dx.data) value = kSizes ? value : RoundTo(dx.dtype, value);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_max_pool_backward() {
  static const OpDef* const op = Make({
      .name = "MaxPoolBackward",
      .doc = "the gradient of a Pool of maxima in x",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[N, C, s..]"},
                   {.name = "dy", .kind = OperandKind::kFloat, .shape = "as Pool gives it"}},
      .attributes = MaxPoolAttributes(),
      .infer = Infer,
      .reference = Sum<false>,
      .expand = Expand,
      .rtol = 2e-5,
      .magnitude = Sum<true>,
      .examples = {{{"f32[2, 3, 9]", "f32[2, 3, 7]"}, {{"kernel", std::vector<int64_t>{3}}}},
                   {{"f32[S, 2, 7, 5]", "f32[S, 2, 4, 3]"},
                    {{"kernel", std::vector<int64_t>{3, 2}},
                     {"strides", std::vector<int64_t>{2, 2}},
                     {"pads", std::vector<int64_t>{1, 1, 1, 0}}}}},
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
