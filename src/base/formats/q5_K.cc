// q5_K: q4_K with 32 bytes of fifth bits before the nibbles: bit s of byte l is that of element l of sub-block s.
#include "base/block_format.h"
#include "base/formats/scale_search.h"

namespace quern {
namespace {

void PackCodes(const uint8_t* codes, uint8_t* block) {
  std::memset(block + 16, 0, 32);
  for (int i = 0; i < 256; ++i) block[16 + i % 32] |= static_cast<uint8_t>((codes[i] >> 4) << i / 32);
  for (int j = 0; j < 128; ++j) {
    const uint8_t* of = codes + j / 32 * 64 + j % 32;
    block[48 + j] = static_cast<uint8_t>((of[0] & 15) | of[32] << 4);
  }
}

void Quantise(const float* x, uint8_t* block) {
  uint8_t codes[256];
  formats::QuantiseWithMinimums(x, {.most = 31, .start = -0.5f, .step = 0.1f, .steps = 15}, block, codes);
  PackCodes(codes, block);
}

void QuantiseBy(const float* x, const Importance& importance, uint8_t* block) {
  uint8_t codes[256];
  formats::QuantiseWithMinimumsBy(x, importance.of, 31, /*cut=*/true, block, codes);
  PackCodes(codes, block);
}

}  // namespace

const BlockFormat& Format_q5_K() {
  static constexpr BlockFormat format = {
      .name = "q5_K",
      .gguf_type = 13,
      .gguf_name = "Q5_K",
      .elements = 256,
      .bytes = 176,
      .code = "u8[48 + i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15 | (u8[16 + i % 32] >> i / 32 & 1) << 4",
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
