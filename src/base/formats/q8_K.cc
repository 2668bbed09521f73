// q8_K: f32 d; 256 signed bytes; sums of 16 of them as i16, which nothing here reads. Activations beside weights in
// blocks of 256, and weights.
#include "base/block_format.h"
#include "base/formats/scale_search.h"

namespace quern {
namespace {

// The element farthest from 0 becomes -127, others are rounded half to even.
void Quantise(const float* x, uint8_t* block) {
  const float farthest = formats::Farthest({x, 256}), inverse = farthest == 0 ? 0 : -127.0f / farthest;
  const float d = farthest == 0 ? 0 : 1 / inverse;
  std::memcpy(block, &d, sizeof d);
  for (int g = 0; g < 16; ++g) {
    int16_t sum = 0;
    for (int j = g * 16; j < g * 16 + 16; ++j) {
      const int code = formats::NearestInt(inverse * x[j]);
      const auto byte = static_cast<int8_t>(code < 127 ? code : 127);
      block[4 + j] = static_cast<uint8_t>(byte);
      sum = static_cast<int16_t>(sum + byte);
    }
    std::memcpy(block + 260 + 2 * g, &sum, sizeof sum);
  }
}

}  // namespace

const BlockFormat& Format_q8_K() {
  static constexpr BlockFormat format = {
      .name = "q8_K",
      .gguf_type = 15,
      .gguf_name = "Q8_K",
      .elements = 256,
      .bytes = 292,
      .code = "u8[4 + i] ^ 128",
      .zero = 128,
      .group = 256,
      .d = "f32[0]",
      .activation = DType::kQ8_K,
      .sums = 16,
      .quantise = Quantise,
  };
  return format;
}

}  // namespace quern
