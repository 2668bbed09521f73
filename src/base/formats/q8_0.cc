// q8_0: f16 d; 32 signed bytes. Weights, and activations beside weights in blocks of 32.
#include "base/block_format.h"

namespace quern {

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
  };
  return format;
}

}  // namespace quern
