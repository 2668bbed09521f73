// q3_K: 32 bytes of third bits, bit s of byte l that of element l of the eight runs of 32; 64 bytes of bit pairs as in
// q2_K; 12 bytes of six-bit scales of groups of 16, less 32: low nibbles of groups 0 to 7 and of 8 to 15 share 8 bytes,
// the upper two bits of groups g, g + 4, g + 8, g + 12 one; f16 d.
#include "base/block_format.h"

namespace quern {

const BlockFormat& Format_q3_K() {
  static constexpr BlockFormat format = {
      .name = "q3_K",
      .gguf_type = 11,
      .gguf_name = "Q3_K",
      .elements = 256,
      .bytes = 110,
      .code = "u8[32 + i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3 | (u8[i % 32] >> i / 32 & 1) << 2",
      .zero = 4,
      .group = 16,
      .d = "f16[54]",
      .scale = "(u8[96 + i / 16 % 8] >> i / 128 * 4 & 15 | (u8[104 + i / 16 % 4] >> i / 64 * 2 & 3) << 4) - 32",
      .activation = DType::kQ8_K,
  };
  return format;
}

}  // namespace quern
