// q5_K: q4_K with 32 bytes of fifth bits before the nibbles: bit s of byte l is that of element l of sub-block s.
#include "base/block_format.h"

namespace quern {

const BlockFormat& Format_q5_K() {
  static constexpr BlockFormat format = {
      .name = "q5_K",
      .gguf_type = 13,
      .gguf_name = "Q5_K",
      .elements = 256,
      .bytes = 176,
      .code = "u8[48 + i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15 | (u8[16 + i % 32] >> i / 32 & 1) << 4",
      .group = 32,
      .d = "f16[0]",
      .scale = "select(i / 32 < 4, u8[4 + i / 32 % 4] & 63, u8[12 + i / 32 % 4] & 15 | u8[4 + i / 32 % 4] >> 6 << 4)",
      .dmin = "f16[1]",
      .minimum = "select(i / 32 < 4, u8[8 + i / 32 % 4] & 63, u8[12 + i / 32 % 4] >> 4 | u8[8 + i / 32 % 4] >> 6 << 4)",
      .activation = DType::kQ8_K,
  };
  return format;
}

}  // namespace quern
