#include "ir/quantisation.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace quern::ir {

ScaleAndZero ScaleAndZeroOf(const Scheme& scheme, const ValueRange& range) {
  double low = std::min(range.low, 0.0), high = std::max(range.high, 0.0);
  if (scheme.symmetric) {
    high = std::max(-low, high);
    low = -high;
  }
  const bool is_signed = scheme.dtype == DType::kI8;
  const double least = !is_signed ? 0 : scheme.symmetric ? -127 : -128, most = is_signed ? 127 : 255;
  const auto scale = static_cast<float>((high - low) / (most - least));
  // Nothing but 0, or what is too near to it to divide by.
  if (scale < FLT_MIN) return {1, scheme.symmetric && !is_signed ? 128 : 0};
  const double zero = scheme.symmetric ? (least + most) / 2 : least - low / static_cast<double>(scale);
  return {scale, static_cast<int64_t>(std::nearbyint(zero))};
}

}  // namespace quern::ir
