#include "ir/norm.h"

#include <cmath>

namespace quern::ir {

Status CheckNorm(const InferContext& context, int affine) {
  const TensorType& x = context.operands[0];
  if (x.rank() < 1) return context.ShapeError(0, "rank 1 or more");
  const std::vector<Extent> row = {x.dims.back()};
  for (int i = affine; i < static_cast<int>(context.operands.size()); ++i) {
    if (!context.Equal(context.operands[i].dims, row)) return context.ShapeError(i, ToString(row));
  }
  return absl::OkStatus();
}

Value ScaleAndShift(Expansion& e, Value normal, std::span<const Value> affine) {
  const Value scaled = e.Add("Mul", {normal, e.Wide(affine[0])});
  return affine.size() > 1 ? e.Add("Add", {scaled, e.Wide(affine[1])}) : scaled;
}

namespace {

// `combine` makes an element of x, the mean, the deviation, gamma and beta.
template <typename Combine>
void ForEachNormal(const RefTensor& x, std::span<const RefTensor* const> affine, bool centred, double eps, RefTensor& y,
                   const Combine& combine) {
  ForEachLine(x, -1, [&](const std::vector<int64_t>& at) {
    const double n = static_cast<double>(at.size());
    double mean = 0, variance = 0;
    if (centred) {
      for (const int64_t i : at) mean += x.data[i] / n;
    }
    for (const int64_t i : at) variance += (x.data[i] - mean) * (x.data[i] - mean) / n;
    for (size_t c = 0; c < at.size(); ++c) {
      y.data[at[c]] = combine(x.data[at[c]], mean, std::sqrt(variance + eps), affine[0]->data[c],
                              affine.size() > 1 ? affine[1]->data[c] : 0);
    }
  });
}

}  // namespace

void ReferenceNorm(const RefTensor& x, std::span<const RefTensor* const> affine, bool centred, double eps,
                   RefTensor& y) {
  ForEachNormal(x, affine, centred, eps, y,
                [&](double value, double mean, double deviation, double gamma, double beta) {
                  return RoundTo(y.dtype, (value - mean) / deviation * gamma + beta);
                });
}

void MagnitudeOfNorm(const RefTensor& x, std::span<const RefTensor* const> affine, bool centred, double eps,
                     RefTensor& y) {
  ForEachNormal(x, affine, centred, eps, y,
                [&](double value, double mean, double deviation, double gamma, double beta) {
                  return (std::fabs(value) + std::fabs(mean)) / deviation * std::fabs(gamma) + std::fabs(beta);
                });
}

}  // namespace quern::ir
