// q4_K: f16 d, f16 dmin; 12 bytes of six-bit scales and minimums of the eight sub-blocks of 32: of the first four a
// byte each, in whose upper two bits lie those of the last four, whose lower four share a byte; 4 chunks of 32 bytes,
// chunk c holding sub-block 2c in its low nibbles and 2c + 1 in its high ones.
#include "base/block_format.h"
#include "base/formats/scale_search.h"

namespace quern {
namespace {

void PackCodes(const uint8_t* codes, uint8_t* block) {
  for (int j = 0; j < 128; ++j) {
    const uint8_t* of = codes + j / 32 * 64 + j % 32;
    block[16 + j] = static_cast<uint8_t>(of[0] | of[32] << 4);
  }
}

void Quantise(const float* x, uint8_t* block) {
  uint8_t codes[256];
  formats::QuantiseWithMinimums(x, {.most = 15, .start = -1, .step = 0.1f, .steps = 20}, block, codes);
  PackCodes(codes, block);
}

void QuantiseBy(const float* x, const Importance& importance, uint8_t* block) {
  uint8_t codes[256];
  formats::QuantiseWithMinimumsBy(x, importance.of, 15, /*cut=*/false, block, codes);
  PackCodes(codes, block);
}

}  // namespace

const BlockFormat& Format_q4_K() {
  static constexpr BlockFormat format = {
      .name = "q4_K",
      .gguf_type = 12,
      .gguf_name = "Q4_K",
      .elements = 256,
      .bytes = 144,
      .code = "u8[16 + i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15",
      .group = 32,
      .d = "f16[0]",
      .scale = "select(i / 32 < 4, u8[4 + i / 32 % 4] & 63, u8[12 + i / 32 % 4] & 15 | u8[4 + i / 32 % 4] >> 6 << 4)",
      .dmin = "f16[1]",
      .minimum = "select(i / 32 < 4, u8[8 + i / 32 % 4] & 63, u8[12 + i / 32 % 4] >> 4 | u8[8 + i / 32 % 4] >> 6 << 4)",
      .activation = DType::kQ8_K,
      .quantise = Quantise,
      .quantise_by = QuantiseBy,
  };
  return format;
}

}  // namespace quern
