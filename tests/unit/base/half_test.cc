// The 16-bit floats: all 65536 values, and rounding checked against exact neighbours in double.
#include "base/half.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace quern {
namespace {

// The value by the definition of the format, in double.
double Exact(uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  const int exponent = bits >> mantissa_bits & top, mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == top) return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

struct Format {
  const char* name;
  int exponent_bits, mantissa_bits;
  float (*widen)(uint16_t);
  uint16_t (*narrow)(float);
};
constexpr Format kFormats[] = {{"f16", 5, 10, HalfToFloat, FloatToHalf},
                               {"bf16", 8, 7, BFloat16ToFloat, FloatToBFloat16}};

TEST(HalfTest, AllValuesWidenExactlyAndComeBack) {
  for (const Format& format : kFormats) {
    for (uint32_t i = 0; i < 65536; ++i) {
      const uint16_t bits = static_cast<uint16_t>(i);
      const double exact = Exact(bits, format.exponent_bits, format.mantissa_bits);
      const float wide = format.widen(bits);
      if (std::isnan(exact)) {
        ASSERT_TRUE(std::isnan(wide)) << format.name << " " << i;
        ASSERT_TRUE(std::isnan(format.widen(format.narrow(wide)))) << format.name << " " << i;
        ASSERT_EQ(format.narrow(wide) & 0x8000, bits & 0x8000) << format.name << " " << i;
        continue;
      }
      ASSERT_EQ(std::bit_cast<uint64_t>(static_cast<double>(wide)), std::bit_cast<uint64_t>(exact))
          << format.name << " " << i;
      ASSERT_EQ(format.narrow(wide), bits) << format.name << " " << i;
    }
  }
}

// Between each pair of neighbours: the midpoint goes to the even one, anything nearer to one goes there.
TEST(HalfTest, RoundsHalfToEvenBetweenAllNeighbours) {
  for (const Format& format : kFormats) {
    const uint16_t infinity = static_cast<uint16_t>(((1 << format.exponent_bits) - 1) << format.mantissa_bits);
    for (uint16_t low = 0; low + 1 < infinity; ++low) {
      const uint16_t high = low + 1, even = low & 1 ? high : low;
      const double a = Exact(low, format.exponent_bits, format.mantissa_bits);
      const double b = Exact(high, format.exponent_bits, format.mantissa_bits);
      const float middle = static_cast<float>((a + b) / 2);
      ASSERT_EQ(format.narrow(middle), even) << format.name << " " << low;
      ASSERT_EQ(format.narrow(std::nextafter(middle, 0.0f)), low) << format.name << " " << low;
      ASSERT_EQ(format.narrow(std::nextafter(middle, INFINITY)), high) << format.name << " " << low;
      ASSERT_EQ(format.narrow(-middle), even | 0x8000) << format.name << " " << low;
    }
  }
}

TEST(HalfTest, OverflowsToInfinity) {
  EXPECT_EQ(FloatToHalf(65504.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(FloatToHalf(-INFINITY), 0xfc00);
  EXPECT_EQ(FloatToBFloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(FloatToBFloat16(INFINITY), 0x7f80);
  EXPECT_EQ(FloatToHalf(0x1p-25f), 0);  // half of the smallest: to even
  EXPECT_EQ(FloatToHalf(std::nextafter(0x1p-25f, 1.0f)), 1);
  EXPECT_EQ(FloatToHalf(-0.0f), 0x8000);
}

}  // namespace
}  // namespace quern
