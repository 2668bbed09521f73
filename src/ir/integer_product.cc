#include "ir/integer_product.h"

#include <algorithm>

#include "ir/interpret.h"
#include "ir/linear_quantise.h"
#include "ir/product.h"
#include "ir/requantise.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

// What DequantizeLinear makes a value of.
struct Bytes {
  Value bytes, scale;
  ZeroPoint zero;
};

// The numbers of a Constant of integers.
std::optional<std::vector<int64_t>> IntegersOf(const Graph& graph, Value value) {
  const Node& node = graph.node(value.node);
  if (!IsConstant(node) || !IsInteger(node.results[0].dtype)) return std::nullopt;
  std::vector<int64_t> dims;
  for (const Extent& dim : node.results[0].dims) dims.push_back(dim.constant());
  const StatusOr<RefTensor> tensor = RefTensorFromBytes(node.results[0].dtype, std::move(dims), *node.data);
  if (!tensor.ok()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < tensor->elements(); ++i) numbers.push_back(static_cast<int64_t>(tensor->Integer(i)));
  return numbers;
}

// Of f32, with one scale, or with one for each index along `axis` where that is 0 or more.
std::optional<Bytes> BytesBehind(const Graph& graph, Value value, int64_t axis) {
  const Node& node = graph.node(value.node);
  if (!IsDequantizeLinear(node) || node.results[0].dtype != DType::kF32 || node.attributes.Int("block") != 0)
    return std::nullopt;
  const int rank = node.results[0].rank();
  if (!IsByte(graph.type(node.inputs[0]).dtype)) return std::nullopt;
  if (graph.type(node.inputs[1]).rank() != 0 && FromStart(node.attributes.Int("axis"), rank) != axis)
    return std::nullopt;
  Bytes found{node.inputs[0], node.inputs[1], {}};
  if (node.inputs.size() > 2) found.zero = {node.inputs[2], IntegersOf(graph, node.inputs[2])};
  return found;
}

// [M] beside [.., M, N].
Value InColumn(Expansion& e, Value value) {
  if (!e.ok() || e.type(value).rank() != 1) return value;
  return e.Sized(value, {e.type(value).dims[0], Extent(1)});
}

// [M] beside [N, M, places..].
Value BesideChannels(Expansion& e, Value value, size_t rank) {
  if (!e.ok() || e.type(value).rank() != 1) return value;
  std::vector<Extent> dims(rank - 1, Extent(1));
  dims[0] = e.type(value).dims[0];
  return e.Sized(value, std::move(dims));
}

// sum a b - za sum b - zb sum a + K za zb. `a_sums` and `b_sums` are asked for where they count.
Value WithoutZeros(Expansion& e, Value sum, std::optional<Value> za, std::optional<Value> zb, const Extent& k,
                   const std::function<Value()>& a_sums, const std::function<Value()>& b_sums) {
  if (za) sum = e.Add("Sub", {sum, e.Add("Mul", {*za, b_sums()})});
  if (zb) sum = e.Add("Sub", {sum, e.Add("Mul", {*zb, a_sums()})});
  if (!za || !zb) return sum;
  const Value count = e.Stored(e.Add("Size", {}, {{"extent", std::vector<Extent>{k}}}), DType::kI32);
  return e.Add("Add", {sum, e.Add("Mul", {e.Add("Mul", {*za, *zb}), count})});
}

}  // namespace

bool ZeroPoint::IsZero() const {
  if (!value) return true;
  return known && std::all_of(known->begin(), known->end(), [](int64_t zero) { return zero == 0; });
}

Value ProductOfBytes(Expansion& e, Value a, const ZeroPoint& a_zero, Value b, const ZeroPoint& b_zero, bool rows) {
  const Value sum = e.Add("MatMul", {a, b}, {{"transpose_b", rows}});
  if (!e.ok()) return sum;
  std::optional<Value> za, zb;
  if (!a_zero.IsZero()) za = InColumn(e, e.Stored(*a_zero.value, DType::kI32));
  if (!b_zero.IsZero()) zb = e.Stored(*b_zero.value, DType::kI32);
  const auto last = static_cast<int64_t>(e.type(a).rank()) - 1, k = static_cast<int64_t>(e.type(b).rank()) - 1;
  const auto b_sums = [&] {
    const Value sums = Sum32(e, b, rows ? k : k - 1);
    if (!rows || !e.ok()) return sums;
    std::vector<Extent> dims = e.type(sums).dims;
    std::swap(dims[k], dims[k - 1]);
    return e.Sized(sums, std::move(dims));
  };
  return WithoutZeros(e, sum, za, zb, e.type(a).dims.back(), [&] { return Sum32(e, a, last); }, b_sums);
}

Value ConvolutionOfBytes(Expansion& e, Value x, const ZeroPoint& x_zero, Value w, const ZeroPoint& w_zero,
                         const Window& window, int64_t groups) {
  if (!e.ok()) return x;
  std::optional<Value> zx;
  if (!x_zero.IsZero()) zx = e.Stored(*x_zero.value, DType::kI32);
  double fill = x_zero.known && !x_zero.known->empty() ? static_cast<double>(x_zero.known->front()) : 0;
  // Padding that is not known before a run: it is taken off first.
  if (window.IsPadded() && zx && !x_zero.known) {
    x = e.Add("Sub", {e.Stored(x, DType::kI32), *zx});
    w = e.Stored(w, DType::kI32);
    zx.reset();
    fill = 0;
  }
  const TensorType weights = e.type(w);
  std::vector<Extent> known = e.type(x).dims;
  known[1] = weights.dims[1] * Extent(groups);
  const Value seen = Windows(e, e.Sized(x, std::move(known)), window, fill);  // [N, C, kernel.., places..]
  if (!e.ok()) return seen;
  const std::vector<Extent> all = e.type(seen).dims;
  std::vector<Extent> dims = {all[0], weights.dims[0]};
  Extent k = weights.dims[1], places(1);
  for (const int64_t size : window.kernel) k = k * Extent(size);
  for (size_t d = 2 + window.kernel.size(); d < all.size(); ++d) {
    places = places * all[d];
    dims.push_back(all[d]);
  }
  const Extent rows = *weights.dims[0].DividedBy(Extent(groups));
  const Value right = e.Sized(seen, {all[0], Extent(groups), k, places}), left = e.Sized(w, {Extent(groups), rows, k});
  std::optional<Value> zw;
  if (!w_zero.IsZero()) {
    zw = e.Stored(*w_zero.value, DType::kI32);
    if (e.ok() && e.type(*zw).rank() == 1) zw = e.Sized(*zw, {Extent(groups), rows, Extent(1)});
  }
  const Value sum = WithoutZeros(
      e, e.Add("MatMul", {left, right}), zw, zx, k, [&] { return Sum32(e, left, 2); },
      [&] { return Sum32(e, right, 2); });
  return e.Sized(sum, std::move(dims));
}

StatusOr<std::optional<Value>> MakeIntegerProduct(Graph& graph, const Node& node, int origin) {
  const bool convolution = node.op == FindConvolution();
  if (!convolution && !IsMatMul(node)) return std::nullopt;
  const TensorType w = graph.type(node.inputs[1]);
  const bool rows = !convolution && ReadsRows(node);
  const std::optional<Bytes> left = BytesBehind(graph, node.inputs[0], -1),
                             right = BytesBehind(graph, node.inputs[1], convolution ? 0 : w.rank() - (rows ? 2 : 1));
  if (!left || !right || (convolution && node.attributes.Bool("channels_last"))) return std::nullopt;
  Expansion e(graph, origin);
  const int rank = node.results[0].rank();
  Value sum, scale = right->scale;
  if (convolution) {
    sum = ConvolutionOfBytes(e, left->bytes, left->zero, right->bytes, right->zero, WindowOf(node.attributes, w),
                             node.attributes.Int("groups"));
    scale = BesideChannels(e, scale, static_cast<size_t>(rank));
  } else {
    sum = ProductOfBytes(e, left->bytes, left->zero, right->bytes, right->zero, rows);
  }
  Value y = e.Add("Mul", {e.Stored(sum, DType::kF32), e.Add("Mul", {left->scale, scale})});
  if (convolution && node.inputs.size() > 2) y = e.Add("Add", {y, BiasOfChannels(e, node.inputs[2], rank)});
  QUERN_ASSIGN(const std::vector<Value> made, e.Finish({y}));
  return made[0];
}

}  // namespace quern::ir
