// q6_K: 128 bytes of low nibbles, 64 of upper bit pairs, 16 signed scales, f16 d. Each half of 128 elements is four
// streams of 32: the nibbles of streams 0 and 2 share 32 bytes, those of 1 and 3 the next 32; the upper bits of all
// four share 32.
#include <cmath>

#include "base/block_format.h"
#include "base/formats/scale_search.h"

// The arithmetic is part of the result; clang contracts within an expression unless told.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

namespace quern {
namespace {

// In squares that count by `importance`.
void QuantiseByEach(const float* x, const float* importance, uint8_t* block) {
  uint8_t codes[256];
  float scales[16];
  for (int g = 0; g < 16; ++g)
    scales[g] = formats::SearchAround({x + 16 * g, 16}, importance + 16 * g, 32, codes + 16 * g);
  const float farthest = formats::Farthest(scales), inverse = -128.0f / farthest;
  std::memset(block, 0, 210);
  if (std::fabs(farthest) < formats::kLeastOfGroup) return;
  formats::PutHalf(block + 208, 1 / inverse);
  const float d = formats::HalfAt(block + 208);
  for (int g = 0; g < 16; ++g) {
    const int near = formats::NearestInt(inverse * scales[g]);
    const auto scale = static_cast<int8_t>(near < 127 ? near : 127);
    block[192 + g] = static_cast<uint8_t>(scale);
    const float group_d = d * static_cast<float>(scale);
    if (group_d == 0) continue;
    for (int j = 16 * g; j < 16 * g + 16; ++j) {
      const int code = formats::NearestInt(x[j] / group_d);
      codes[j] = static_cast<uint8_t>(formats::Clamped(code, -32, 31) + 32);
    }
  }
  for (int i = 0; i < 256; ++i) {
    block[i / 128 * 64 + i % 64] |= static_cast<uint8_t>((codes[i] & 15) << i / 64 % 2 * 4);
    block[128 + i / 128 * 32 + i % 32] |= static_cast<uint8_t>(codes[i] >> 4 << i / 32 % 4 * 2);
  }
}

void Quantise(const float* x, uint8_t* block) {
  float squares[256];
  for (int i = 0; i < 256; ++i) squares[i] = x[i] * x[i];
  QuantiseByEach(x, squares, block);
}

void QuantiseBy(const float* x, const Importance& importance, uint8_t* block) {
  QuantiseByEach(x, importance.of, block);
}

}  // namespace

const BlockFormat& Format_q6_K() {
  static constexpr BlockFormat format = {
      .name = "q6_K",
      .gguf_type = 14,
      .gguf_name = "Q6_K",
      .elements = 256,
      .bytes = 210,
      .code =
          "u8[i / 128 * 64 + i % 64] >> i / 64 % 2 * 4 & 15 | "
          "(u8[128 + i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3) << 4",
      .zero = 32,
      .group = 16,
      .d = "f16[104]",
      .scale = "i8[192 + i / 16]",
      .activation = DType::kQ8_K,
      .quantise = Quantise,
      .quantise_by = QuantiseBy,
  };
  return format;
}

}  // namespace quern
