// MaxPoolBackward: dy added where the window of a Pool of maxima had its first largest element, in row-major order.

#include <cmath>
#include <limits>

#include "ir/backward.h"
#include "ir/shape.h"
#include "ir/window.h"

namespace quern::ir {
namespace {

Attributes ForwardOf(const Attributes& attributes) {
  Attributes pool = attributes;
  pool.Set("kind", std::string("max"));
  return pool;
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const OpDef& pool = *FindOp("Pool");
  Attributes attributes = ForwardOf(context.attributes);
  QUERN_RETURN_IF_ERROR(CheckAttributes(pool.name, pool.attributes, attributes, /*fill_defaults=*/true));
  InferContext forward{context.op, context.operands, attributes, context.symbols, context.constraints};
  QUERN_ASSIGN(const std::vector<TensorType> y, pool.infer(forward));
  if (!context.Equal(context.operands[1].dims, y[0].dims)) return context.ShapeError(1, ToString(y[0].dims));
  return std::vector<TensorType>{x};
}

// Windows of x [N, C, s..] have k.. elements at each of o.. places; windows of the numbers of elements say where each
// lies. Padding is smaller than all, and has a number that no element has.
StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const std::vector<Extent> dims = graph.type(inputs[0]).dims, places = graph.type(inputs[1]).dims;
  const Window window = WindowOf(node.attributes, node.attributes.Ints("kernel"));
  Extent count(1), elements(1), kernel(1);
  for (size_t d = 2; d < dims.size(); ++d) {
    count = count * places[d];
    elements = elements * dims[d];
    kernel = kernel * Extent(window.kernel[d - 2]);
  }
  const Extent lines = dims[0] * dims[1];
  const Value windows =
      e.Sized(Windows(e, inputs[0], window, -std::numeric_limits<double>::infinity()), {lines, kernel, count});
  const Value numbers =
      e.Add("Iota", {}, {{"shape", std::vector<Extent>{elements}}, {"axis", int64_t{0}}, {"dtype", DType::kI64}});
  const std::vector<Extent> image(dims.begin() + 2, dims.end());
  const Value where =
      e.Sized(Windows(e, e.Sized(numbers, image), window, std::numeric_limits<int32_t>::max()), {kernel * count});
  // Of the window at place p its k-th element: number k * count + p.
  const Value first = e.Add("ArgMax", {windows}, {{"axis", int64_t{1}}, {"keep_dim", false}});
  const Value stride = e.Add("Size", {}, {{"extent", std::vector<Extent>{count}}});
  const Value column =
      e.Add("Iota", {}, {{"shape", std::vector<Extent>{1, count}}, {"axis", int64_t{1}}, {"dtype", DType::kI64}});
  const Value chosen = e.Add("Gather", {where, e.Add("Add", {e.Add("Mul", {first, stride}), column})});
  const Value dy = e.Sized(e.Wide(inputs[1]), {lines, count});
  if (!e.ok()) return e.Finish({});
  const Value zeros =
      e.Add("Expand", {e.Scalar(0, e.type(dy).dtype)}, {{"shape", std::vector<Extent>{lines, elements}}});
  const Value sums =
      e.Add("ScatterElements", {zeros, chosen, dy}, {{"axis", int64_t{1}}, {"reduction", std::string("add")}});
  return e.Finish({e.Stored(e.Sized(sums, dims), node.results[0].dtype)});
}

template <bool kSizes>
Status Sum(RefContext& context) {
  const RefTensor &x = *context.operands[0], &dy = *context.operands[1];
  RefTensor& dx = context.results[0];
  const Window window = WindowOf(context.node.attributes, context.node.attributes.Ints("kernel"));
  const size_t rank = x.dims.size();
  std::vector<int64_t> index(rank), place(rank);
  int64_t all = 1;
  for (const int64_t k : window.kernel) all *= k;
  const int64_t elements = dy.elements();
  for (int64_t from = 0; from < elements; ++from, NextIndex(dy.dims, index)) {
    int64_t best = -1;
    std::vector<int64_t> k(window.kernel.size());
    for (int64_t t = 0; t < all; ++t, NextIndex(window.kernel, k)) {
      place = index;
      bool exists = true;
      for (size_t d = 2; d < rank; ++d) {
        place[d] = index[d] * window.strides[d - 2] + k[d - 2] * window.dilations[d - 2] - window.low[d - 2];
        exists = exists && place[d] >= 0 && place[d] < x.dims[d];
      }
      if (!exists) continue;
      const int64_t at = x.Offset(place);
      const bool more = best < 0 || x.data[at] > x.data[best] || (std::isnan(x.data[at]) && !std::isnan(x.data[best]));
      if (more) best = at;
    }
    if (best >= 0) dx.data[best] += kSizes ? std::fabs(dy.data[from]) : dy.data[from];
  }
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
      .attributes = WindowAttributes({{.name = "kernel", .kind = AttrKind::kInts}}),
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
