// q2_K: 16 bytes of scales (low nibbles) and minimums (high ones) of groups of 16; 64 bytes of bit pairs, f16 d, f16
// dmin. Each half of 128 elements is four streams of 32 that share 32 bytes, two bits each.
#include "base/block_format.h"

namespace quern {

const BlockFormat& Format_q2_K() {
  static constexpr BlockFormat format = {
      .name = "q2_K",
      .gguf_type = 10,
      .gguf_name = "Q2_K",
      .elements = 256,
      .bytes = 84,
      .code = "u8[16 + i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3",
      .group = 16,
      .d = "f16[40]",
      .scale = "u8[i / 16] & 15",
      .dmin = "f16[41]",
      .minimum = "u8[i / 16] >> 4",
      .activation = DType::kQ8_K,
  };
  return format;
}

}  // namespace quern
