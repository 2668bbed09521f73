// iq4_xs: f16 d; six-bit scales of groups of 32, less 32: 2 bytes of their upper two bits, 4 of their low nibbles; 16
// bytes for each group of nibbles as in iq4_nl, numbers of the same levels.
#include "base/block_format.h"
#include "base/formats/scale_search.h"

// The arithmetic is part of the result; clang contracts within an expression unless told.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

namespace quern {
namespace {

constexpr int8_t kLevels[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

void QuantiseByEach(const float* x, const float* weights, uint8_t* block) {
  float scales[8];
  for (int g = 0; g < 8; ++g) scales[g] = formats::SearchLevels(x + 32 * g, weights + 32 * g, kLevels);
  const float d = -formats::Farthest(scales) / 32, inverse = d != 0 ? 1 / d : 0;
  std::memset(block, 0, 8);
  formats::PutHalf(block, d);
  for (int g = 0; g < 8; ++g) {
    const int scale = formats::Clamped(formats::NearestInt(inverse * scales[g]), -32, 31);
    block[4 + g / 2] |= static_cast<uint8_t>(((scale + 32) & 15) << g % 2 * 4);
    block[2 + g / 4] |= static_cast<uint8_t>((scale + 32) >> 4 << g % 4 * 2);
    // By d as it is, not as the half that is stored.
    const float group_d = d * static_cast<float>(scale), by = group_d != 0 ? 1 / group_d : 0;
    uint8_t codes[32];
    for (int j = 0; j < 32; ++j) codes[j] = static_cast<uint8_t>(formats::NearestLevel(kLevels, by * x[32 * g + j]));
    formats::PackNibbles(codes, block + 8 + 16 * g);
  }
}

void Quantise(const float* x, uint8_t* block) {
  float squares[256];
  for (int i = 0; i < 256; ++i) squares[i] = x[i] * x[i];
  QuantiseByEach(x, squares, block);
}

void QuantiseBy(const float* x, const Importance& importance, uint8_t* block) {
  const std::span<const float> all(x, 256);
  float weights[256];
  formats::Weigh(all, importance.of, 2 * formats::SumOfSquares(all) / 256, weights);
  QuantiseByEach(x, weights, block);
}

}  // namespace

const BlockFormat& Format_iq4_xs() {
  static constexpr BlockFormat format = {
      .name = "iq4_xs",
      .gguf_type = 23,
      .gguf_name = "IQ4_XS",
      .elements = 256,
      .bytes = 136,
      .code = "u8[8 + i / 32 * 16 + i % 16] >> i / 16 % 2 * 4 & 15",
      .levels = kLevels,
      .group = 32,
      .d = "f16[0]",
      .scale = "(u8[4 + i / 64] >> i / 32 % 2 * 4 & 15 | (u8[2 + i / 128] >> i / 32 % 4 * 2 & 3) << 4) - 32",
      .activation = DType::kQ8_K,
      .quantise = Quantise,
      .quantise_by = QuantiseBy,
  };
  return format;
}

}  // namespace quern
