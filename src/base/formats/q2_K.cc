// q2_K: 16 bytes of scales (low nibbles) and minimums (high ones) of groups of 16; 64 bytes of bit pairs, f16 d, f16
// dmin. Each half of 128 elements is four streams of 32 that share 32 bytes, two bits each.
#include <cmath>

#include "base/block_format.h"
#include "base/formats/scale_search.h"

// The arithmetic is part of the result; clang contracts within an expression unless told.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

namespace quern {
namespace {

// What scales and minimums of groups, nibbles of a byte, make of the elements; codes stay where a group has no scale.
void PutCodes(const float* x, float d, float dmin, uint8_t* codes, uint8_t* block) {
  formats::PutHalf(block + 80, d);
  formats::PutHalf(block + 82, dmin);
  const float half_d = formats::HalfAt(block + 80), half_min = formats::HalfAt(block + 82);
  for (int g = 0; g < 16; ++g) {
    const float group_d = half_d * static_cast<float>(block[g] & 15),
                group_min = half_min * static_cast<float>(block[g] >> 4);
    if (group_d == 0) continue;
    for (int j = 16 * g; j < 16 * g + 16; ++j) {
      const int code = formats::NearestInt((x[j] + group_min) / group_d);
      codes[j] = static_cast<uint8_t>(formats::Clamped(code, 0, 3));
    }
  }
  formats::PackPairs(codes, block + 16);
}

// Scales and minimums of groups are 4 bits of the greatest's fifteenth.
void Quantise(const float* x, uint8_t* block) {
  uint8_t codes[256];
  float scales[16], minimums[16], most_scale = 0, most_minimum = 0;
  for (int g = 0; g < 16; ++g) {
    float weights[16];
    for (int j = 0; j < 16; ++j) weights[j] = std::fabs(x[16 * g + j]);
    scales[g] = formats::SearchAffine({x + 16 * g, 16}, weights,
                                      {.most = 3, .start = -0.5f, .step = 0.1f, .steps = 15, .magnitudes = true},
                                      codes + 16 * g, minimums[g]);
    if (scales[g] > most_scale) most_scale = scales[g];
    if (minimums[g] > most_minimum) most_minimum = minimums[g];
  }
  const float by_scale = most_scale > 0 ? 15.0f / most_scale : 0,
              by_minimum = most_minimum > 0 ? 15.0f / most_minimum : 0;
  for (int g = 0; g < 16; ++g) {
    const int scale = formats::NearestInt(by_scale * scales[g]),
              minimum = formats::NearestInt(by_minimum * minimums[g]);
    block[g] = static_cast<uint8_t>(scale | minimum << 4);
  }
  PutCodes(x, most_scale > 0 ? most_scale / 15.0f : 0, most_minimum > 0 ? most_minimum / 15.0f : 0, codes, block);
}

void QuantiseBy(const float* x, const Importance& importance, uint8_t* block) {
  const float spread = formats::SumOfSquares({x, 256}) / 256;
  uint8_t codes[256], scale_codes[16], minimum_codes[16];
  float scales[16], minimums[16], sums[16];
  for (int g = 0; g < 16; ++g) {
    float weights[16];
    formats::Weigh({x + 16 * g, 16}, importance.of + 16 * g, spread, weights);
    sums[g] = formats::SumOf(weights);
    scales[g] = formats::SearchAffine({x + 16 * g, 16}, weights, {.most = 3}, codes + 16 * g, minimums[g]);
  }
  const float d = formats::SearchPositive(scales, sums, 15, scale_codes),
              dmin = formats::SearchPositive(minimums, sums, 15, minimum_codes);
  for (int g = 0; g < 16; ++g) block[g] = static_cast<uint8_t>(scale_codes[g] | minimum_codes[g] << 4);
  PutCodes(x, d, dmin, codes, block);
}

}  // namespace

const BlockFormat& Format_q2_K() {
  static constexpr BlockFormat format = {
      .name = "q2_K",
      .gguf_type = 10,
      .gguf_name = "Q2_K",
      .elements = 256,
      .bytes = 84,
      .code = "u8[16 + i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3",
      .group = 16,
      .d = "f16[40]",
      .scale = "u8[i / 16] & 15",
      .dmin = "f16[41]",
      .minimum = "u8[i / 16] >> 4",
      .activation = DType::kQ8_K,
      .quantise = Quantise,
      .quantise_by = QuantiseBy,
  };
  return format;
}

}  // namespace quern
