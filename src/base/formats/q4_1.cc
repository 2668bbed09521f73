// q4_1: f16 d, f16 m; 16 bytes of nibbles as in q4_0. The codes count from m.
#include "base/block_format.h"

namespace quern {

const BlockFormat& Format_q4_1() {
  static constexpr BlockFormat format = {
      .name = "q4_1",
      .gguf_type = 3,
      .gguf_name = "Q4_1",
      .elements = 32,
      .bytes = 20,
      .code = "u8[4 + i % 16] >> i / 16 * 4 & 15",
      .group = 32,
      .d = "f16[0]",
      .added = "f16[1]",
      .activation = DType::kQ8_0,
  };
  return format;
}

}  // namespace quern
