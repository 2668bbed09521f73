// q3_K: 32 bytes of third bits, bit s of byte l that of element l of the eight runs of 32; 64 bytes of bit pairs as in
// q2_K; 12 bytes of six-bit scales of groups of 16, less 32: low nibbles of groups 0 to 7 and of 8 to 15 share 8 bytes,
// the upper two bits of groups g, g + 4, g + 8, g + 12 one; f16 d.
#include <cmath>

#include "base/block_format.h"
#include "base/formats/scale_search.h"

// The arithmetic is part of the result; clang contracts within an expression unless told.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

namespace quern {
namespace {

// Codes -4 to 3 of a group, from the farthest element's, then changed one by one while the sum of squares, which count
// by x * x, falls. Returns the scale; codes are stored from 0 on, of a group of zeros 0.
float SearchGroup(const float* x, uint8_t* codes) {
  const float farthest = formats::Farthest({x, 16}), inverse = -4 / farthest;
  std::memset(codes, 0, 16);
  if (std::fabs(farthest) < formats::kLeastOfGroup) return 0;
  int chosen[16];
  float sum_lx = 0, sum_l2 = 0;
  for (int j = 0; j < 16; ++j) {
    chosen[j] = formats::Clamped(formats::NearestInt(inverse * x[j]), -4, 3);
    const float w = x[j] * x[j], l = static_cast<float>(chosen[j]);
    sum_lx += w * x[j] * l;
    sum_l2 += w * l * l;
  }
  for (int round = 0; round < 5; ++round) {
    bool changed = false;
    for (int j = 0; j < 16; ++j) {
      const float w = x[j] * x[j], l = static_cast<float>(chosen[j]);
      float lx = sum_lx - w * x[j] * l;
      if (!(lx > 0)) continue;
      float l2 = sum_l2 - w * l * l;
      const int other = formats::Clamped(formats::NearestInt(x[j] * l2 / lx), -4, 3);
      if (other == chosen[j]) continue;
      lx += w * x[j] * static_cast<float>(other);
      l2 += w * static_cast<float>(other) * static_cast<float>(other);
      if (!(l2 > 0 && lx * lx * sum_l2 > sum_lx * sum_lx * l2)) continue;
      chosen[j] = other;
      sum_lx = lx;
      sum_l2 = l2;
      changed = true;
    }
    if (!changed) break;
  }
  for (int j = 0; j < 16; ++j) codes[j] = static_cast<uint8_t>(chosen[j] + 4);
  return sum_l2 > 0 ? sum_lx / sum_l2 : 0;
}

// The codes that scales, from 0 to 63, make of the elements; they stay where a group has no scale.
void PutCodes(const float* x, float d, const uint8_t* scales, uint8_t* codes, uint8_t* block) {
  std::memset(block, 0, 32);
  std::memset(block + 96, 0, 12);
  formats::PutHalf(block + 108, d);
  const float half_d = formats::HalfAt(block + 108);
  for (int g = 0; g < 16; ++g) {
    block[96 + g % 8] |= static_cast<uint8_t>((scales[g] & 15) << g / 8 * 4);
    block[104 + g % 4] |= static_cast<uint8_t>(scales[g] >> 4 << g / 4 * 2);
    const float group_d = half_d * static_cast<float>(scales[g] - 32);
    if (group_d == 0) continue;
    for (int j = 16 * g; j < 16 * g + 16; ++j) {
      const int code = formats::NearestInt(x[j] / group_d);
      codes[j] = static_cast<uint8_t>(formats::Clamped(code, -4, 3) + 4);
    }
  }
  for (int i = 0; i < 256; ++i) block[i % 32] |= static_cast<uint8_t>((codes[i] >> 2) << i / 32);
  formats::PackPairs(codes, block + 32);
}

void Quantise(const float* x, uint8_t* block) {
  uint8_t codes[256], scale_codes[16];
  float scales[16];
  for (int g = 0; g < 16; ++g) scales[g] = SearchGroup(x + 16 * g, codes + 16 * g);
  const float farthest = formats::Farthest(scales), inverse = farthest == 0 ? 0 : -32.0f / farthest;
  for (int g = 0; g < 16; ++g) {
    const int near = static_cast<int8_t>(formats::NearestInt(inverse * scales[g]));
    // Without any scale bytes stay 0, which says -32 times 0.
    scale_codes[g] = static_cast<uint8_t>(farthest == 0 ? 0 : formats::Clamped(near, -32, 31) + 32);
  }
  PutCodes(x, farthest == 0 ? 0 : 1 / inverse, scale_codes, codes, block);
}

void QuantiseBy(const float* x, const Importance& importance, uint8_t* block) {
  const float spread = 2 * formats::SumOfSquares({x, 256}) / 256;
  uint8_t codes[256], scale_codes[16];
  float scales[16], sums[16];
  for (int g = 0; g < 16; ++g) {
    float weights[16];
    formats::Weigh({x + 16 * g, 16}, importance.of + 16 * g, spread, weights);
    sums[g] = formats::SumOf(weights);
    scales[g] = formats::SearchAround({x + 16 * g, 16}, weights, 4, codes + 16 * g);
  }
  const float d = formats::SearchAround(scales, sums, 32, scale_codes);
  PutCodes(x, d, scale_codes, codes, block);
}

}  // namespace

const BlockFormat& Format_q3_K() {
  static constexpr BlockFormat format = {
      .name = "q3_K",
      .gguf_type = 11,
      .gguf_name = "Q3_K",
      .elements = 256,
      .bytes = 110,
      .code = "u8[32 + i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3 | (u8[i % 32] >> i / 32 & 1) << 2",
      .zero = 4,
      .group = 16,
      .d = "f16[54]",
      .scale = "(u8[96 + i / 16 % 8] >> i / 128 * 4 & 15 | (u8[104 + i / 16 % 4] >> i / 64 * 2 & 3) << 4) - 32",
      .activation = DType::kQ8_K,
      .quantise = Quantise,
      .quantise_by = QuantiseBy,
  };
  return format;
}

}  // namespace quern
