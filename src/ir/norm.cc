#include "ir/norm.h"

#include <cmath>

namespace quern::ir {

StatusOr<std::vector<TensorType>> InferNorm(const char* op, const InferContext& context) {
  const TensorType& x = context.operands[0];
  if (x.rank() < 1) return absl::InvalidArgumentError(absl::StrFormat("%s: x has no axis", op));
  for (size_t i = 1; i < context.operands.size(); ++i) {
    if (context.operands[i].dims != std::vector<Extent>{x.dims.back()}) {
      return absl::InvalidArgumentError(absl::StrFormat("%s: %s is %s, [%s] expected", op, i == 1 ? "gamma" : "beta",
                                                        context.operands[i].ToString(), x.dims.back().ToString()));
    }
  }
  return std::vector<TensorType>{x};
}

Value ScaleAndShift(Expansion& e, Value normal, std::span<const Value> affine) {
  const Value scaled = e.Add("Mul", {normal, affine[0]});
  return affine.size() > 1 ? e.Add("Add", {scaled, affine[1]}) : scaled;
}

void ReferenceNorm(const RefTensor& x, std::span<const RefTensor* const> affine, bool centred, double eps,
                   RefTensor& y) {
  ForEachLine(x, -1, [&](const std::vector<int64_t>& at) {
    const double n = static_cast<double>(at.size());
    double mean = 0, variance = 0;
    if (centred) {
      for (const int64_t i : at) mean += x.data[i] / n;
    }
    for (const int64_t i : at) variance += (x.data[i] - mean) * (x.data[i] - mean) / n;
    for (size_t c = 0; c < at.size(); ++c) {
      const double normal = (x.data[at[c]] - mean) / std::sqrt(variance + eps);
      y.data[at[c]] = RoundTo(y.dtype, normal * affine[0]->data[c] + (affine.size() > 1 ? affine[1]->data[c] : 0));
    }
  });
}

}  // namespace quern::ir
