// q5_1: q4_1 with 4 bytes of fifth bits before the nibbles, bit b of byte a that of element 8a + b.
#include "base/block_format.h"
#include "base/formats/scale_search.h"

namespace quern {
namespace {

void Quantise(const float* x, uint8_t* block) {
  uint8_t codes[32];
  float least;
  formats::PutHalf(block, formats::QuantiseBetween(x, 31, codes, least));
  formats::PutHalf(block + 2, least);
  formats::PackFifthBits(codes, block + 4);
  formats::PackNibbles(codes, block + 8);
}

void QuantiseBy(const float* x, const Importance& importance, uint8_t* block) {
  uint8_t codes[32];
  float weights[32], taken;
  formats::Weigh({x, 32}, importance.of, importance.mean_square, weights);
  formats::PutHalf(block, formats::SearchAffine({x, 32}, weights, {.most = 31}, codes, taken));
  formats::PutHalf(block + 2, -taken);
  formats::PackFifthBits(codes, block + 4);
  formats::PackNibbles(codes, block + 8);
}

}  // namespace

const BlockFormat& Format_q5_1() {
  static constexpr BlockFormat format = {
      .name = "q5_1",
      .gguf_type = 7,
      .gguf_name = "Q5_1",
      .elements = 32,
      .bytes = 24,
      .code = "u8[8 + i % 16] >> i / 16 * 4 & 15 | (u8[4 + i / 8] >> i % 8 & 1) << 4",
      .group = 32,
      .d = "f16[0]",
      .added = "f16[1]",
      .activation = DType::kQ8_0,
      .quantise = Quantise,
      .quantise_by = QuantiseBy,
  };
  return format;
}

}  // namespace quern
