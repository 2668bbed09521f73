// Conv2dBackwardWeight: the gradient of a Conv in w, of `dims`: products of dy with the windows of x, by image, summed.

#include <cmath>

#include "ir/backward.h"
#include "ir/conv_backward.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const TensorType w = {x.dtype, context.attributes.Extents("dims")};
  for (const Extent& dim : w.dims) {
    if (!dim.is_constant() || dim.constant() < 0) return context.AttributeError("dims", "numbers of 0 or more");
  }
  QUERN_RETURN_IF_ERROR(CheckConvBackward(context, x, w));
  return std::vector<TensorType>{w};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const TensorType x = graph.type(inputs[0]), dy = graph.type(inputs[1]), &w = node.results[0];
  const Window window = WindowOf(node.attributes, w);
  const Extent groups(node.attributes.Int("groups")), rows = *w.dims[0].DividedBy(groups);
  Extent places(1), k = w.dims[1];
  for (size_t d = 2; d < dy.dims.size(); ++d) {
    places = places * dy.dims[d];
    k = k * w.dims[d];
  }
  std::vector<Extent> known = x.dims;
  known[1] = w.dims[1] * groups;
  const Value image = e.Wide(e.Sized(inputs[0], known));
  const Value windows = e.Sized(Windows(e, image, window, 0), {dy.dims[0], groups, k, places});
  const Term left = Term::Wide(e, inputs[1]).Sized({dy.dims[0], groups, rows, places});
  const Term sum = left.Times(Term(e, windows), /*rows=*/true).Sum({0});
  return e.Finish({e.Stored(sum.Sized(w.dims).value, w.dtype)});
}

template <bool kSizes>
Status Sum(RefContext& context) {
  const RefTensor &x = *context.operands[0], &dy = *context.operands[1];
  RefTensor& dw = context.results[0];
  ForEachProduct(context.node.attributes, x.dims, dw.dims, dy.dims, [&](int64_t from, int64_t k, int64_t y) {
    const double term = x.data[from] * dy.data[y];
    dw.data[k] += kSizes ? std::fabs(term) : term;
  });
  for (double& value : dw.data) value = kSizes ? value : RoundTo(dw.dtype, value);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_conv2d_backward_weight() {
  static const OpDef* const op = Make({
      .name = "Conv2dBackwardWeight",
      .doc = "the gradient of a Conv of 1 to 3 spatial dimensions in w",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[N, C, s..]"},
                   {.name = "dy", .kind = OperandKind::kFloat, .shape = "[N, M, o..]"}},
      .attributes = ConvBackwardAttributes("of w"),
      .infer = Infer,
      .reference = Sum<false>,
      .expand = Expand,
      .rtol = 1e-5,
      .magnitude = Sum<true>,
      .examples = {{{"f32[2, 3, 9]", "f32[2, 5, 8]"}, {{"dims", std::vector<Extent>{5, 3, 2}}}},
                   {{"f32[S, 2, 8, 5]", "f32[S, 4, 4, 3]"},
                    {{"dims", std::vector<Extent>{4, 1, 3, 3}},
                     {"groups", int64_t{2}},
                     {"strides", std::vector<int64_t>{2, 2}},
                     {"pads", std::vector<int64_t>{1, 1, 0, 1}}}}},
  });
  return *op;
}

}  // namespace quern::ir
