// q5_0: f16 d; 4 bytes of fifth bits, bit b of byte a that of element 8a + b; 16 bytes of nibbles as in q4_0.
#include "base/block_format.h"
#include "base/formats/scale_search.h"

namespace quern {
namespace {

void Quantise(const float* x, uint8_t* block) {
  uint8_t codes[32];
  formats::PutHalf(block, formats::QuantiseAround(x, 16, codes));
  formats::PackFifthBits(codes, block + 2);
  formats::PackNibbles(codes, block + 6);
}

void QuantiseBy(const float* x, const Importance& importance, uint8_t* block) {
  uint8_t codes[32];
  float weights[32];
  formats::Weigh({x, 32}, importance.of, importance.mean_square, weights);
  formats::PutHalf(block, formats::SearchAround({x, 32}, weights, 16, codes));
  formats::PackFifthBits(codes, block + 2);
  formats::PackNibbles(codes, block + 6);
}

}  // namespace

const BlockFormat& Format_q5_0() {
  static constexpr BlockFormat format = {
      .name = "q5_0",
      .gguf_type = 6,
      .gguf_name = "Q5_0",
      .elements = 32,
      .bytes = 22,
      .code = "u8[6 + i % 16] >> i / 16 * 4 & 15 | (u8[2 + i / 8] >> i % 8 & 1) << 4",
      .zero = 16,
      .group = 32,
      .d = "f16[0]",
      .activation = DType::kQ8_0,
      .quantise = Quantise,
      .quantise_by = QuantiseBy,
  };
  return format;
}

}  // namespace quern
