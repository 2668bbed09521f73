// q4_1: f16 d, f16 m; 16 bytes of nibbles as in q4_0. The codes count from m.
#include "base/block_format.h"
#include "base/formats/scale_search.h"

namespace quern {
namespace {

void Quantise(const float* x, uint8_t* block) {
  uint8_t codes[32];
  float least;
  formats::PutHalf(block, formats::QuantiseBetween(x, 15, codes, least));
  formats::PutHalf(block + 2, least);
  formats::PackNibbles(codes, block + 4);
}

void QuantiseBy(const float* x, const Importance& importance, uint8_t* block) {
  uint8_t codes[32];
  float weights[32], taken;
  formats::Weigh({x, 32}, importance.of, importance.mean_square, weights);
  formats::PutHalf(block, formats::SearchAffine({x, 32}, weights, {.most = 15}, codes, taken));
  formats::PutHalf(block + 2, -taken);
  formats::PackNibbles(codes, block + 4);
}

}  // namespace

const BlockFormat& Format_q4_1() {
  static constexpr BlockFormat format = {
      .name = "q4_1",
      .gguf_type = 3,
      .gguf_name = "Q4_1",
      .elements = 32,
      .bytes = 20,
      .code = "u8[4 + i % 16] >> i / 16 * 4 & 15",
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
