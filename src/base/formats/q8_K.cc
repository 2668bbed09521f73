// q8_K: f32 d; 256 signed bytes; sums of 16 of them as i16, which nothing here reads. Activations beside weights in
// blocks of 256.
#include "base/block_format.h"

namespace quern {

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
      .is_weight = false,
      .sums = 16,
  };
  return format;
}

}  // namespace quern
