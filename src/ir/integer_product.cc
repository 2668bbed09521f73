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

// The terms of a sum.
Value Count32(Expansion& e, const Extent& k) {
  return e.Stored(e.Add("Size", {}, {{"extent", std::vector<Extent>{k}}}), DType::kI32);
}

// sum a b - za sum b - zb sum a + K za zb. `k`, `a_sums` and `b_sums` are asked for where they count.
Value WithoutZeros(Expansion& e, Value sum, std::optional<Value> za, std::optional<Value> zb,
                   const std::function<Value()>& k, const std::function<Value()>& a_sums,
                   const std::function<Value()>& b_sums) {
  if (za) sum = e.Add("Sub", {sum, e.Add("Mul", {*za, b_sums()})});
  if (zb) sum = e.Add("Sub", {sum, e.Add("Mul", {*zb, a_sums()})});
  if (!za || !zb) return sum;
  return e.Add("Add", {sum, e.Add("Mul", {e.Add("Mul", {*za, *zb}), k()})});
}

}  // namespace

bool ZeroPoint::IsZero() const {
  if (!value) return true;
  return known && std::all_of(known->begin(), known->end(), [](int64_t zero) { return zero == 0; });
}

ZeroPoint KnownZero(Expansion& e, int64_t zero, DType dtype) {
  return {e.Stored(e.Scalar(static_cast<double>(zero), DType::kF32), dtype), std::vector{zero}};
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
  const Extent terms = e.type(a).dims.back();
  return WithoutZeros(e, sum, za, zb, [&] { return Count32(e, terms); }, [&] { return Sum32(e, a, last); }, b_sums);
}

// Padding that is not known before a run, which the sums have as 0, takes no part in them: what ones in place of x or w
// would give has to be known for each place.
Value ConvolutionOfBytes(Expansion& e, Value x, const ZeroPoint& x_zero, Value w, const ZeroPoint& w_zero,
                         const Window& window, int64_t groups) {
  if (!e.ok()) return x;
  std::optional<Value> zx, zw;
  if (!x_zero.IsZero()) zx = e.Stored(*x_zero.value, DType::kI32);
  if (!w_zero.IsZero()) zw = e.Stored(*w_zero.value, DType::kI32);
  const bool by_place = window.IsPadded() && zx && !x_zero.known;
  Attributes attributes = AttributesOf(window);
  attributes.Set("groups", groups);
  attributes.Set("fill", x_zero.known && !x_zero.known->empty() ? static_cast<double>(x_zero.known->front()) : 0.0);
  const auto sums = [&](Value image, Value weights) { return e.Add("Conv", {image, weights}, attributes); };
  const auto ones = [&](std::vector<Extent> dims) {
    return e.Add("Expand", {e.Stored(e.Scalar(1, DType::kF32), DType::kI8)}, {{"shape", std::move(dims)}});
  };
  const Value sum = sums(x, w);
  if (!e.ok()) return sum;
  const std::vector<Extent> weights = e.type(w).dims, dims = e.type(sum).dims;
  const size_t rank = dims.size();
  std::vector<Extent> image = e.type(x).dims, one_a_group = weights;
  image[0] = Extent(1);
  image[1] = weights[1] * Extent(groups);
  one_a_group[0] = Extent(groups);
  Extent k(1);
  std::vector<int64_t> axes;
  for (size_t d = 1; d < rank; ++d) {
    k = k * weights[d];
    axes.push_back(static_cast<int64_t>(d));
  }
  // Sums of one channel a group, as all its channels have them.
  const auto beside = [&](Value of_groups) {
    if (groups == 1 || weights[0] == Extent(groups) || !e.ok()) return of_groups;
    std::vector<Extent> apart = e.type(of_groups).dims, wide = apart;
    apart.insert(apart.begin() + 2, Extent(1));
    wide.insert(wide.begin() + 2, *weights[0].DividedBy(Extent(groups)));
    const Value all = e.Add("Expand", {e.Sized(of_groups, std::move(apart))}, {{"shape", std::move(wide)}});
    std::vector<Extent> joined = e.type(of_groups).dims;
    joined[1] = weights[0];
    return e.Sized(all, std::move(joined));
  };
  const auto x_sums = [&] { return beside(sums(x, ones(one_a_group))); };
  const auto w_sums = [&] {
    if (by_place) return sums(ones(image), w);
    const Value reduced =
        e.Add("Reduce", {e.Stored(w, DType::kI32)}, {{"op", "sum"}, {"axes", axes}, {"keep_dim", false}});
    return BesideChannels(e, reduced, rank);
  };
  if (zw) zw = BesideChannels(e, *zw, rank);
  const auto counts = [&] { return by_place ? beside(sums(ones(image), ones(one_a_group))) : Count32(e, k); };
  return WithoutZeros(e, sum, zx, zw, counts, x_sums, w_sums);
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
