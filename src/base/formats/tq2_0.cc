// tq2_0: 64 bytes of bit pairs as in q2_K, codes of -1, 0 and 1; f16 d.
#include <cmath>

#include "base/block_format.h"
#include "base/formats/scale_search.h"

namespace quern {
namespace {

// d is the greatest magnitude; codes are rounded half away.
void Quantise(const float* x, uint8_t* block) {
  const float d = std::fabs(formats::Farthest({x, 256})), inverse = d != 0 ? 1 / d : 0;
  uint8_t codes[256];
  for (int j = 0; j < 256; ++j) codes[j] = static_cast<uint8_t>(formats::ToByte(std::round(x[j] * inverse)) + 1);
  formats::PackPairs(codes, block);
  formats::PutHalf(block + 64, d);
}

}  // namespace

const BlockFormat& Format_tq2_0() {
  static constexpr BlockFormat format = {
      .name = "tq2_0",
      .gguf_type = 35,
      .gguf_name = "TQ2_0",
      .elements = 256,
      .bytes = 66,
      .code = "u8[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3",
      .zero = 1,
      .group = 256,
      .d = "f16[32]",
      .activation = DType::kQ8_K,
      .quantise = Quantise,
  };
  return format;
}

}  // namespace quern
