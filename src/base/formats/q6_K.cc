// q6_K: 128 bytes of low nibbles, 64 of upper bit pairs, 16 signed scales, f16 d. Each half of 128 elements is four
// streams of 32: the nibbles of streams 0 and 2 share 32 bytes, those of 1 and 3 the next 32; the upper bits of all
// four share 32.
#include "base/block_format.h"

namespace quern {

const BlockFormat& Format_q6_K() {
  static constexpr BlockFormat format = {
      .name = "q6_K",
      .gguf_type = 14,
      .gguf_name = "Q6_K",
      .elements = 256,
      .bytes = 210,
      .code =
          "u8[i / 128 * 64 + i % 64] >> i / 64 % 2 * 4 & 15 | "
          "(u8[128 + i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3) << 4",
      .zero = 32,
      .group = 16,
      .d = "f16[104]",
      .scale = "i8[192 + i / 16]",
      .activation = DType::kQ8_K,
  };
  return format;
}

}  // namespace quern
