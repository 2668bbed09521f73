// Calls the object form of a raw-vector primitive of one level over arrays: the vector types and calling convention of
// each width, which an ordinary function of the baseline cannot use.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "simd/library.h"

namespace quern::simd {

// All primitives pass through these types; a vector of integers travels in the same registers as one of floats.
using Lane = uint32_t;

#define QUERN_TEST_CALLERS(bytes, features)                                                                     \
  typedef Lane Vec##bytes __attribute__((vector_size(bytes)));                                                  \
  __attribute__((target(features))) inline void Call##bytes(const void* function, const Lane* a, const Lane* b, \
                                                            Lane* y, size_t count) {                            \
    for (size_t i = 0; i < count; i += (bytes) / sizeof(Lane)) {                                                \
      Vec##bytes va, vb, vy;                                                                                    \
      std::memcpy(&va, a + i, bytes);                                                                           \
      if (b != nullptr) {                                                                                       \
        std::memcpy(&vb, b + i, bytes);                                                                         \
        vy = reinterpret_cast<Vec##bytes (*)(Vec##bytes, Vec##bytes)>(const_cast<void*>(function))(va, vb);     \
      } else {                                                                                                  \
        vy = reinterpret_cast<Vec##bytes (*)(Vec##bytes)>(const_cast<void*>(function))(va);                     \
      }                                                                                                         \
      std::memcpy(y + i, &vy, bytes);                                                                           \
    }                                                                                                           \
  }
QUERN_TEST_CALLERS(16, "sse4.2")
QUERN_TEST_CALLERS(32, "avx2")
QUERN_TEST_CALLERS(64, "avx512f,avx512vl,avx512bw,avx512dq")
#undef QUERN_TEST_CALLERS

// y = function(a) or function(a, b) lane by lane; T is float or uint32_t. Any count: the last register is filled up
// with copies of the last element.
template <typename Out, typename In>
std::vector<Out> CallPrimitive(std::string_view name, const Level& level, const std::vector<In>& a,
                               const std::vector<In>* b = nullptr) {
  static_assert(sizeof(In) == sizeof(Lane) && sizeof(Out) == sizeof(Lane));
  const void* function = FindTile(std::string(name) + "_" + std::string(level.name));
  QUERN_CHECK(function != nullptr);
  const size_t lanes = level.vector_bytes / sizeof(Lane);
  const size_t padded = (a.size() + lanes - 1) / lanes * lanes;
  auto copy = [&](const std::vector<In>& from) {
    std::vector<Lane> to(padded);
    for (size_t i = 0; i < padded; ++i) std::memcpy(&to[i], &from[i < from.size() ? i : from.size() - 1], sizeof(Lane));
    return to;
  };
  const std::vector<Lane> in_a = copy(a);
  const std::vector<Lane> in_b = b != nullptr ? copy(*b) : std::vector<Lane>();
  std::vector<Lane> out(padded);
  auto* call = level.vector_bytes == 16 ? Call16 : level.vector_bytes == 32 ? Call32 : Call64;
  call(function, in_a.data(), b != nullptr ? in_b.data() : nullptr, out.data(), padded);
  std::vector<Out> result(a.size());
  std::memcpy(result.data(), out.data(), a.size() * sizeof(Out));
  return result;
}

// Every `step`th bit pattern of a float, neighbours in the list far apart so that each register mixes magnitudes.
inline std::vector<float> SampleFloats(uint64_t step) {
  const uint64_t count = (uint64_t{1} << 32) / step / 16;
  std::vector<float> samples;
  samples.reserve(count * 16);
  for (uint64_t i = 0; i < count; ++i) {
    for (uint64_t k = 0; k < 16; ++k) {
      const uint32_t bits = static_cast<uint32_t>((i + k * count) * step);
      float x;
      std::memcpy(&x, &bits, sizeof(x));
      samples.push_back(x);
    }
  }
  return samples;
}

// |value - expected| in units of the last place of the float nearest to expected. Overflow counts as the next binade's
// first number; a NaN where a number belongs, or the reverse, is infinitely wrong.
inline double UlpError(float value, double expected) {
  if (std::isnan(value) || std::isnan(expected)) return std::isnan(value) && std::isnan(expected) ? 0 : INFINITY;
  const double limit = 0x1p128;
  const double clipped = std::fmin(std::fmax(expected, -limit), limit);
  const double got = std::fmin(std::fmax(static_cast<double>(value), -limit), limit);
  int exponent = -125;
  if (std::fabs(clipped) >= 0x1p-126) std::frexp(std::fabs(clipped) == limit ? 0x1.fp127 : clipped, &exponent);
  return std::fabs(got - clipped) / std::ldexp(1.0, exponent - 24);
}

}  // namespace quern::simd
