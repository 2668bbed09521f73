// Conversions between f32 and the 16-bit floats by integer arithmetic: round to nearest even, NaN kept, subnormals
// exact. The portable meaning; kernels use the machine's own instructions and are tested against these. Doubles go by
// way of RoundToOdd: FloatToHalf(RoundToOdd(x)) rounds once.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace quern {

// f32 nearest to `value` but with its last bit set when inexact: rounding that to 16 bits is then exact ("to odd").
inline float RoundToOdd(double value) {
  const float nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value || std::isinf(nearest)) return nearest;
  const uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (bits & 1) return nearest;
  const bool away = std::fabs(static_cast<double>(nearest)) < std::fabs(value);
  return std::bit_cast<float>(away ? bits + 1 : bits - 1);
}

inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 31, mantissa = half & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // exact: subnormal half
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

inline uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00 | (magnitude >> 13 & 1023);  // NaN
  if (magnitude >= 0x477ff000) return sign | 0x7c00;                            // rounds to infinity
  if (magnitude < 0x38800000) {
    // Subnormal half: adding 0.5 leaves the rounded multiple of 2^-24 in the low mantissa bits.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) - 0x3f000000);
  }
  const uint32_t rounded = magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1);
  return sign | static_cast<uint16_t>(rounded >> 13);
}

inline float BFloat16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

inline uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace quern
