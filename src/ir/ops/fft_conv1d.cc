// FftConv1d: all sums of a[i] b[j] with i + j = k along the last axis, np.convolve's "full", by transforms of a size
// that has small factors; other dimensions broadcast.

#include <algorithm>
#include <cmath>

#include "ir/fourier.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

// 2^i or 3 2^i.
int64_t GoodSize(int64_t least) {
  int64_t size = 1;
  while (size < least) size *= 2;
  return size >= 4 && size / 4 * 3 >= least ? size / 4 * 3 : size;
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  int64_t total = -1;
  for (int i = 0; i < 2; ++i) {
    const TensorType& x = context.operands[i];
    if (x.dtype != DType::kF32) return context.UnsupportedError(i, "f32");
    if (x.rank() < 1) return context.ShapeError(i, "rank 1 or more");
    if (!x.dims.back().is_constant()) return context.UnsupportedError(i, "a number of elements along the last axis");
    if (x.dims.back().constant() < 1) return context.ShapeError(i, "[.., N], N at least 1");
    if (x.dims.back().constant() > kLongestLine / 4)
      return context.UnsupportedError(i, absl::StrFormat("up to %d elements along the last axis", kLongestLine / 4));
    total += x.dims.back().constant();
  }
  const std::vector<Extent>&a = context.operands[0].dims, &b = context.operands[1].dims;
  StatusOr<std::vector<Extent>> dims =
      BroadcastDims({a.begin(), a.end() - 1}, {b.begin(), b.end() - 1}, context.constraints);
  if (!dims.ok()) return context.ShapeError(1, absl::StrFormat("batches that broadcast with %s", ToString(a)));
  dims->emplace_back(total);
  return std::vector<TensorType>{{DType::kF32, *std::move(dims)}};
}

// `term`: of a factor of a and one of b.
template <typename Term>
void Convolve(RefContext& context, const Term& term) {
  const RefTensor &a = *context.operands[0], &b = *context.operands[1];
  RefTensor& y = context.results[0];
  const int64_t length = a.dims.back(), taps = b.dims.back(), elements = y.elements();
  std::vector<int64_t> index(y.dims.size());
  for (int64_t at = 0; at < elements; ++at, NextIndex(y.dims, index)) {
    std::vector<int64_t> of = index;
    of.back() = 0;
    const int64_t first_a = a.Offset(of), first_b = b.Offset(of), k = index.back();
    for (int64_t i = std::max<int64_t>(0, k - taps + 1); i <= std::min(k, length - 1); ++i)
      y.data[at] += term(a.data[first_a + i], b.data[first_b + k - i]);
  }
}

Status Reference(RefContext& context) {
  Convolve(context, [](double a, double b) { return a * b; });
  return absl::OkStatus();
}

// What a transform rounds it spreads over the line: of each result the norms of both lines.
Status Magnitude(RefContext& context) {
  const auto norms = [&](const RefTensor& x) {
    RefTensor sums{DType::kF64, x.dims, {}};
    sums.dims.back() = 1;
    sums.Allocate();
    for (size_t i = 0; i < x.data.size(); ++i) sums.data[i / x.dims.back()] += x.data[i] * x.data[i];
    return sums;
  };
  const RefTensor a = norms(*context.operands[0]), b = norms(*context.operands[1]);
  RefTensor& y = context.results[0];
  std::vector<int64_t> index(y.dims.size());
  for (size_t at = 0; at < y.data.size(); ++at, NextIndex(y.dims, index))
    y.data[at] = std::sqrt(a.At(index) * b.At(index));
  return absl::OkStatus();
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
  Expansion e(graph, origin);
  const Extent total = node.results[0].dims.back();
  const int64_t size = GoodSize(total.constant());
  const auto there = [&](Value x) {
    std::vector<Extent> dims = e.type(x).dims;
    dims.back() = Extent(size) - dims.back();
    const Value zeros = e.Add("Expand", {e.Scalar(0, DType::kF32)}, {{"shape", dims}});
    return e.Add("Rfft", {e.Add("Concat", {x, zeros}, {{"axis", int64_t{-1}}})});
  };
  const Value product = e.Add("Mul", {there(inputs[0]), there(inputs[1])});
  const Value back = e.Add("Irfft", {product}, {{"n", size}});
  return e.Finish({e.Add(
      "Narrow", {back},
      {{"axis", int64_t{-1}}, {"start", std::vector<Extent>{Extent(0)}}, {"length", std::vector<Extent>{total}}})});
}

}  // namespace

const OpDef& Op_fft_conv1d() {
  static const OpDef* const op = Make({
      .name = "FftConv1d",
      .doc = "the whole convolution along the last axis, by transforms",
      .kind = OpKind::kComposite,
      .operands = {{.name = "a", .kind = OperandKind::kFloat, .shape = "f32 [.., L]"},
                   {.name = "b", .kind = OperandKind::kFloat, .shape = "f32 [.., K]"}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .rtol = 5e-6,
      .magnitude = Magnitude,
      .examples = {{{"f32[3, 30]", "f32[7]"}}, {{"f32[S, 1, 11]", "f32[5, 40]"}}},
  });
  return *op;
}

}  // namespace quern::ir
