// q4_0: f16 d; 16 bytes of nibbles, the low ones elements 0 to 15, the high ones 16 to 31.
#include "base/block_format.h"
#include "base/formats/scale_search.h"

namespace quern {
namespace {

void Quantise(const float* x, uint8_t* block) {
  uint8_t codes[32];
  formats::PutHalf(block, formats::QuantiseAround(x, 8, codes));
  formats::PackNibbles(codes, block + 2);
}

void QuantiseBy(const float* x, const Importance& importance, uint8_t* block) {
  uint8_t codes[32];
  float weights[32];
  formats::Weigh({x, 32}, importance.of, importance.mean_square, weights);
  formats::PutHalf(block, formats::SearchAround({x, 32}, weights, 8, codes));
  formats::PackNibbles(codes, block + 2);
}

}  // namespace

const BlockFormat& Format_q4_0() {
  static constexpr BlockFormat format = {
      .name = "q4_0",
      .gguf_type = 2,
      .gguf_name = "Q4_0",
      .elements = 32,
      .bytes = 18,
      .code = "u8[2 + i % 16] >> i / 16 * 4 & 15",
      .zero = 8,
      .group = 32,
      .d = "f16[0]",
      .activation = DType::kQ8_0,
      .quantise = Quantise,
      .quantise_by = QuantiseBy,
  };
  return format;
}

}  // namespace quern
