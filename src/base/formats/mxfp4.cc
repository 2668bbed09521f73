// mxfp4: a byte of exponent; 16 bytes of nibbles as in q4_0, each a float of one sign bit, two of exponent and one of
// mantissa (OCP microscaling). Levels are twice those floats, the power half as great.
#include <cmath>

#include "base/block_format.h"
#include "base/formats/scale_search.h"

// The arithmetic is part of the result; clang contracts within an expression unless told.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

namespace quern {
namespace {

constexpr int8_t kLevels[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// The exponent of the greatest magnitude becomes that of 4, codes are the nearest float, the first of equals.
void Quantise(const float* x, uint8_t* block) {
  const float most = std::fabs(formats::Farthest({x, 32}));
  const int exponent = most > 0 ? static_cast<uint8_t>(std::floor(std::log2(most)) - 2 + 127) : 0;
  const float d = std::ldexp(1.0f, exponent - 128);
  uint8_t codes[32];
  for (int j = 0; j < 32; ++j) {
    const auto error_of = [&](int code) { return std::fabs(static_cast<float>(kLevels[code]) * d - x[j]); };
    int best = 0;
    for (int code = 1; code < 16; ++code) {
      if (error_of(code) < error_of(best)) best = code;
    }
    codes[j] = static_cast<uint8_t>(best);
  }
  block[0] = static_cast<uint8_t>(exponent);
  formats::PackNibbles(codes, block + 1);
}

}  // namespace

const BlockFormat& Format_mxfp4() {
  static constexpr BlockFormat format = {
      .name = "mxfp4",
      .gguf_type = 39,
      .gguf_name = "MXFP4",
      .elements = 32,
      .bytes = 17,
      .code = "u8[1 + i % 16] >> i / 16 * 4 & 15",
      .levels = kLevels,
      .group = 32,
      .d = "e8[0]",
      .activation = DType::kQ8_0,
      .quantise = Quantise,
  };
  return format;
}

}  // namespace quern
