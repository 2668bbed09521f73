// q8_0: f16 d; 32 signed bytes. Weights, and activations beside weights in blocks of 32.
#include <cmath>

#include "base/block_format.h"
#include "base/formats/scale_search.h"

namespace quern {
namespace {

// d is the greatest magnitude over 127, codes are rounded half away.
void Quantise(const float* x, uint8_t* block) {
  const float d = std::fabs(formats::Farthest({x, 32})) / 127, inverse = d != 0 ? 1 / d : 0;
  formats::PutHalf(block, d);
  // A subnormal d has an infinite inverse; the cast is kept defined, its value does not matter there.
  for (int j = 0; j < 32; ++j) {
    const float rounded = std::round(x[j] * inverse);
    block[2 + j] = static_cast<uint8_t>(std::fabs(rounded) <= 127 ? static_cast<int>(rounded) : 0);
  }
}

}  // namespace

const BlockFormat& Format_q8_0() {
  static constexpr BlockFormat format = {
      .name = "q8_0",
      .gguf_type = 8,
      .gguf_name = "Q8_0",
      .elements = 32,
      .bytes = 34,
      .code = "u8[2 + i] ^ 128",
      .zero = 128,
      .group = 32,
      .d = "f16[0]",
      .activation = DType::kQ8_0,
      .sums = 32,
      .quantise = Quantise,
  };
  return format;
}

}  // namespace quern
