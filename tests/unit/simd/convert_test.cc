// The 16-bit float conversions at every level against base/half.h: all halves, every 997th float, and the borders.
#include <gtest/gtest.h>

#include "base/half.h"
#include "unit/simd/math_support.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace quern::simd {
namespace {

uint32_t BitsOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
float FloatOf(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

std::vector<uint32_t> AllHalves() {
  std::vector<uint32_t> halves(65536);
  for (uint32_t i = 0; i < 65536; ++i) halves[i] = i;
  return halves;
}

std::vector<float> FloatsAndBorders() {
  std::vector<float> x = SampleFloats(997);
  // Every half, its neighbours, and the midpoints between halves where rounding decides.
  for (uint32_t half = 0; half < 65536; ++half) {
    const uint32_t widened[] = {BitsOf(HalfToFloat(static_cast<uint16_t>(half))), half << 16};
    const uint32_t midpoints[] = {0x1000, 0x8000};
    for (int kind = 0; kind < 2; ++kind) {
      for (uint32_t bits : {widened[kind], widened[kind] + midpoints[kind]}) {
        for (int delta = -1; delta <= 1; ++delta) x.push_back(FloatOf(bits + delta));
      }
    }
  }
  for (int k = 0; k < 4096; ++k) x.push_back(static_cast<float>(std::ldexp(k + 0.5, -24)));  // midpoints of subnormals
  return x;
}

void CheckToFloat(const char* name, float (*reference)(uint16_t)) {
  const std::vector<uint32_t> halves = AllHalves();
  for (const Level& level : Levels()) {
    if (!HostSupports(level)) continue;
    const std::vector<float> got = CallPrimitive<float>(name, level, halves);
    for (uint32_t i = 0; i < halves.size(); ++i) {
      const float expected = reference(static_cast<uint16_t>(i));
      if (std::isnan(expected)) {
        // Quiet or signalling, the sign and the rest of the payload stay.
        ASSERT_EQ(BitsOf(got[i]) | 0x400000, BitsOf(expected) | 0x400000) << name << " " << level.name << " " << i;
      } else {
        ASSERT_EQ(BitsOf(got[i]), BitsOf(expected)) << name << " " << level.name << " " << i;
      }
    }
  }
}

void CheckFromFloat(const char* name, uint16_t (*reference)(float), const std::vector<float>& x) {
  for (const Level& level : Levels()) {
    if (!HostSupports(level)) continue;
    const std::vector<uint32_t> got = CallPrimitive<uint32_t>(name, level, x);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(got[i], uint32_t{reference(x[i])}) << name << " " << level.name << " " << std::hex << BitsOf(x[i]);
    }
  }
}

TEST(ConvertTest, HalfToFloat) { CheckToFloat("q_f16_to_f32", HalfToFloat); }
TEST(ConvertTest, BFloat16ToFloat) { CheckToFloat("q_bf16_to_f32", BFloat16ToFloat); }
TEST(ConvertTest, FloatToHalf) { CheckFromFloat("q_f32_to_f16", FloatToHalf, FloatsAndBorders()); }
TEST(ConvertTest, FloatToBFloat16) { CheckFromFloat("q_f32_to_bf16", FloatToBFloat16, FloatsAndBorders()); }

#if defined(__x86_64__)
// Kernels may run with subnormals flushed; half subnormals must survive that, since weights have them.
TEST(ConvertTest, FlushToZeroChangesNothing) {
  const std::vector<uint32_t> halves = AllHalves();
  std::vector<float> x = FloatsAndBorders();
  constexpr unsigned kFlush = 0x8040;  // FTZ and DAZ
  for (const Level& level : Levels()) {
    if (!HostSupports(level)) continue;
    const std::vector<float> floats = CallPrimitive<float>("q_f16_to_f32", level, halves);
    const std::vector<uint32_t> packed = CallPrimitive<uint32_t>("q_f32_to_f16", level, x);
    const unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | kFlush);
    const std::vector<float> floats_flushed = CallPrimitive<float>("q_f16_to_f32", level, halves);
    const std::vector<uint32_t> packed_flushed = CallPrimitive<uint32_t>("q_f32_to_f16", level, x);
    _mm_setcsr(saved);
    EXPECT_EQ(std::memcmp(floats.data(), floats_flushed.data(), floats.size() * sizeof(float)), 0) << level.name;
    EXPECT_EQ(packed, packed_flushed) << level.name;
  }
}
#endif

}  // namespace
}  // namespace quern::simd
