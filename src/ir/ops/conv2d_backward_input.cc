// Conv2dBackwardInput: the gradient of a Conv in x, of `dims`: each element of dy adds w, scaled by it, to a window.

#include <cmath>

#include "ir/composite.h"
#include "ir/conv_backward.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& w = context.operands[0];
  const TensorType x = {w.dtype, context.attributes.Extents("dims")};
  for (const Extent& dim : x.dims) {
    if (!context.AtLeast(dim, 0)) return context.AttributeError("dims", "0 or more");
  }
  QUERN_RETURN_IF_ERROR(CheckConvBackward(context, x, w));
  for (size_t d = 2; d < x.dims.size(); ++d) {
    if (!x.dims[d].is_constant()) return context.UnsupportedError(1, "spatial dimensions that are known");
  }
  return std::vector<TensorType>{x};
}

// What strides leave of x behind the last window is padding of the transposed convolution.
StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const TensorType w = graph.type(inputs[0]), dy = graph.type(inputs[1]), &x = node.results[0];
  const Window window = WindowOf(node.attributes, w);
  std::vector<int64_t> more;
  for (size_t d = 0; d + 2 < x.dims.size(); ++d) {
    const int64_t reached =
        (dy.dims[d + 2].constant() - 1) * window.strides[d] + window.Span(d) - window.low[d] - window.high[d];
    more.push_back(x.dims[d + 2].constant() - reached);
  }
  Attributes attributes;
  for (const auto& [name, value] : node.attributes.values()) {
    if (name != "dims") attributes.Set(name, value);
  }
  attributes.Set("output_padding", more);
  return e.Finish({e.Add("ConvTranspose", {inputs[1], inputs[0]}, std::move(attributes))});
}

template <bool kSizes>
Status Sum(RefContext& context) {
  const RefTensor &w = *context.operands[0], &dy = *context.operands[1];
  RefTensor& dx = context.results[0];
  ForEachProduct(context.node.attributes, dx.dims, w.dims, dy.dims, [&](int64_t x, int64_t k, int64_t y) {
    const double term = w.data[k] * dy.data[y];
    dx.data[x] += kSizes ? std::fabs(term) : term;
  });
  for (double& value : dx.data) value = kSizes ? value : RoundTo(dx.dtype, value);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_conv2d_backward_input() {
  static const OpDef* const op = Make({
      .name = "Conv2dBackwardInput",
      .doc = "the gradient of a Conv of 1 to 3 spatial dimensions in x",
      .kind = OpKind::kComposite,
      .operands = {{.name = "w", .kind = OperandKind::kFloat, .shape = "[M, C / groups, k..]"},
                   {.name = "dy", .kind = OperandKind::kFloat, .shape = "[N, M, o..]"}},
      .attributes = ConvBackwardAttributes("of x"),
      .infer = Infer,
      .reference = Sum<false>,
      .expand = Expand,
      .rtol = 4e-6,
      .magnitude = Sum<true>,
      .examples = {{{"f32[5, 3, 2]", "f32[2, 5, 8]"}, {{"dims", std::vector<Extent>{2, 3, 9}}}},
                   {{"f32[4, 1, 3, 3]", "f32[S, 4, 4, 3]"},
                    {{"dims", std::vector<Extent>{Extent::Symbol("S"), 2, 8, 5}},
                     {"groups", int64_t{2}},
                     {"strides", std::vector<int64_t>{2, 2}},
                     {"pads", std::vector<int64_t>{1, 1, 0, 1}}}}},
  });
  return *op;
}

}  // namespace quern::ir
