// tq1_0: codes of -1, 0 and 1 as digits of base three, five to a byte of 48, then four to each of 4; f16 d. A byte is
// the fraction, of 256, that its digits make, the first the most significant: times three, digit by digit, what goes
// over 255 is the next. 32 bytes hold elements 0 to 159, byte m those of m, m + 32, ..., 16 the next 80, 4 the rest.
#include <cmath>

#include "base/block_format.h"
#include "base/formats/scale_search.h"

namespace quern {
namespace {

// d is the greatest magnitude; codes are rounded half away. A byte is the least of which the digits can be read.
void Quantise(const float* x, uint8_t* block) {
  const float d = std::fabs(formats::Farthest({x, 256})), inverse = d != 0 ? 1 / d : 0;
  const auto digit = [&](int j) { return formats::ToByte(std::round(x[j] * inverse)) + 1; };
  const auto pack = [&](int first, int apart, int count) {
    int number = 0;
    for (int n = 0; n < 5; ++n) number = number * 3 + (n < count ? digit(first + n * apart) : 0);
    return static_cast<uint8_t>((number * 256 + 242) / 243);
  };
  for (int m = 0; m < 32; ++m) block[m] = pack(m, 32, 5);
  for (int m = 0; m < 16; ++m) block[32 + m] = pack(160 + m, 16, 5);
  for (int m = 0; m < 4; ++m) block[48 + m] = pack(240 + m, 4, 4);
  formats::PutHalf(block + 52, d);
}

}  // namespace

const BlockFormat& Format_tq1_0() {
  static constexpr BlockFormat format = {
      .name = "tq1_0",
      .gguf_type = 34,
      .gguf_name = "TQ1_0",
      .elements = 256,
      .bytes = 54,
      // The byte, times a power of three: 1, 3, 9 and 27 are the bytes of a number, 81 is their last times three.
      .code =
          "(u8[select(i < 160, i % 32, select(i < 240, 32 + i % 16, 48 + i % 4))] * "
          "(453575425 >> select(i < 160, i / 32, select(i < 240, i / 16, i / 4)) % 5 % 4 * 8 & 255) * "
          "select(select(i < 160, i / 32, select(i < 240, i / 16, i / 4)) % 5 == 4, 81, 1) & 255) * 3 >> 8",
      .zero = 1,
      .group = 256,
      .d = "f16[26]",
      .activation = DType::kQ8_K,
      .quantise = Quantise,
  };
  return format;
}

}  // namespace quern
