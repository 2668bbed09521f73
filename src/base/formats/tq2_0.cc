// tq2_0: 64 bytes of bit pairs as in q2_K, codes of -1, 0 and 1; f16 d.
#include "base/block_format.h"

namespace quern {

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
  };
  return format;
}

}  // namespace quern
