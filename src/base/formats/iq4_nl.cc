// iq4_nl: f16 d; 16 bytes of nibbles as in q4_0, each the number of a level: levels are closer near zero, as weights
// are.
#include "base/block_format.h"
#include "base/formats/scale_search.h"

namespace quern {
namespace {

constexpr int8_t kLevels[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

void QuantiseByEach(const float* x, const float* weights, uint8_t* block) {
  uint8_t codes[32];
  const float d = formats::SearchLevels(x, weights, kLevels), inverse = d != 0 ? 1 / d : 0;
  formats::PutHalf(block, d);
  for (int j = 0; j < 32; ++j) codes[j] = static_cast<uint8_t>(formats::NearestLevel(kLevels, inverse * x[j]));
  formats::PackNibbles(codes, block + 2);
}

void Quantise(const float* x, uint8_t* block) {
  float squares[32];
  for (int j = 0; j < 32; ++j) squares[j] = x[j] * x[j];
  QuantiseByEach(x, squares, block);
}

void QuantiseBy(const float* x, const Importance& importance, uint8_t* block) {
  const std::span<const float> all(x, 32);
  float weights[32];
  formats::Weigh(all, importance.of, 2 * formats::SumOfSquares(all) / 32, weights);
  QuantiseByEach(x, weights, block);
}

}  // namespace

const BlockFormat& Format_iq4_nl() {
  static constexpr BlockFormat format = {
      .name = "iq4_nl",
      .gguf_type = 20,
      .gguf_name = "IQ4_NL",
      .elements = 32,
      .bytes = 18,
      .code = "u8[2 + i % 16] >> i / 16 * 4 & 15",
      .levels = kLevels,
      .group = 32,
      .d = "f16[0]",
      .activation = DType::kQ8_0,
      .quantise = Quantise,
      .quantise_by = QuantiseBy,
  };
  return format;
}

}  // namespace quern
