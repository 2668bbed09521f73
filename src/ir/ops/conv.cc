// Conv: correlation of x [N, C, s..] with w [M, C / groups, k..], 1 to 3 spatial dimensions, and a bias [M]:
//
//   y[n, m, o..] = b[m] + sum over c, k.. of x[n, g C/groups + c, o * stride + k * dilation - low padding] w[m, c, k..]
//
// where g is the group of m, and x outside of its extents is 0. It is a product of w with the windows of x, which the
// kernels of products read from x itself.

#include "ir/composite.h"
#include "ir/shape.h"
#include "ir/sum_products.h"
#include "ir/window.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &w = context.operands[1];
  QUERN_RETURN_IF_ERROR(CheckConvolution(context, "[M, C / groups, k..]", w.rank() > 0 ? w.dims[0] : Extent(0)));
  const int64_t groups = context.attributes.Int("groups");
  if (!context.Equal(x.dims[1], w.dims[1] * Extent(groups)))
    return context.ShapeError(1, absl::StrFormat("C / groups of %s channels in dimension 1", x.dims[1].ToString()));
  TensorType result{x.dtype, {x.dims[0], w.dims[0]}};
  QUERN_ASSIGN(const std::vector<Extent> places,
               WindowPlaces(context, 0, std::span(x.dims).subspan(2), WindowOf(context.attributes, w)));
  result.dims.insert(result.dims.end(), places.begin(), places.end());
  return std::vector<TensorType>{std::move(result)};
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Extent groups(node.attributes.Int("groups"));
  const TensorType w = graph.type(inputs[1]);
  const std::vector<Extent>& dims = node.results[0].dims;
  const Window window = WindowOf(node.attributes, w);
  std::vector<Extent> channels_known = graph.type(inputs[0]).dims;
  channels_known[1] = w.dims[1] * groups;
  // Halves are rounded once, behind the bias.
  Value x = e.Wide(e.Sized(inputs[0], std::move(channels_known)));
  const Value weights = e.Wide(inputs[1]);
  if (!window.IsTrivial()) {
    Attributes attributes = AttributesOf(window);
    attributes.Set("kernel", window.kernel);
    x = e.Add("Window", {x}, std::move(attributes));
  }
  Extent places(1), k = w.dims[1], rows = *w.dims[0].DividedBy(groups);
  for (size_t d = 2; d < dims.size(); ++d) {
    places = places * dims[d];
    k = k * w.dims[d];
  }
  const Value left = groups == Extent(1) ? e.Sized(weights, {rows, k}) : e.Sized(weights, {groups, rows, k});
  const Value right = groups == Extent(1) ? e.Sized(x, {dims[0], k, places}) : e.Sized(x, {dims[0], groups, k, places});
  Value y = e.Sized(e.Add("MatMul", {left, right}, {{"transpose_b", false}}), dims);
  if (inputs.size() > 2) y = e.Add("Add", {y, BiasOfChannels(e, inputs[2], static_cast<int>(dims.size()))});
  return e.Finish({e.Stored(y, node.results[0].dtype)});
}

// Every result is the sum of `term` over channels and kernel, and of `last` of the bias.
struct Sums {
  template <typename Term>
  static void Run(RefContext& context, const Term& term) {
    const RefTensor &x = *context.operands[0], &w = *context.operands[1];
    RefTensor& y = context.results[0];
    const RefTensor* bias = context.operands.size() > 2 ? context.operands[2] : nullptr;
    const Window window = WindowOf(context.node.attributes, std::span(w.dims).subspan(2));
    const size_t rank = x.dims.size();
    const int64_t rows = w.dims[0] / context.node.attributes.Int("groups"), channels = w.dims[1];
    std::vector<int64_t> index(rank), at_x(rank), at_w(rank);
    const std::vector<int64_t> terms(w.dims.begin() + 1, w.dims.end());
    const int64_t count = w.elements() / std::max<int64_t>(1, w.dims[0]);
    for (double& out : y.data) {
      double sum = bias == nullptr ? 0 : term(bias->data[index[1]], 1);
      std::vector<int64_t> k(terms.size());
      for (int64_t i = 0; i < count; ++i, NextIndex(terms, k)) {
        at_x[0] = index[0];
        at_x[1] = index[1] / rows * channels + k[0];
        at_w[0] = index[1];
        at_w[1] = k[0];
        bool inside = true;
        for (size_t d = 2; d < rank; ++d) {
          at_w[d] = k[d - 1];
          at_x[d] = index[d] * window.strides[d - 2] + k[d - 1] * window.dilations[d - 2] - window.low[d - 2];
          inside &= at_x[d] >= 0 && at_x[d] < x.dims[d];
        }
        if (inside) sum += term(x.At(at_x), w.At(at_w));
      }
      out = RoundTo(y.dtype, sum);
      NextIndex(y.dims, index);
    }
  }
};

}  // namespace

const OpDef& Op_conv() {
  static const OpDef* const op = Make({
      .name = "Conv",
      .doc = "correlation with windows of 1 to 3 spatial dimensions, in groups of channels",
      .kind = OpKind::kComposite,
      .operands = {{.name = "x", .kind = OperandKind::kFloat, .shape = "[N, C, s..]"},
                   {.name = "w", .kind = OperandKind::kFloat, .shape = "[M, C / groups, k..]"},
                   {.name = "b", .kind = OperandKind::kFloat, .shape = "[M]", .optional = true}},
      .attributes = WindowAttributes({{.name = "groups", .kind = AttrKind::kInt, .default_value = int64_t{1}}}),
      .infer = Infer,
      .reference = ReferenceOfProducts<Sums>,
      .expand = Expand,
      .rtol = 2e-6,
      .magnitude = MagnitudeOfProducts<Sums>,
      .onnx = "Conv",
  });
  return *op;
}

}  // namespace quern::ir
