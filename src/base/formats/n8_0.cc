// n8_0: f32 d; 32 bytes, each a code with its sign. As n4_0, of 8 bits.
#include "base/block_format.h"

namespace quern {

const BlockFormat& Format_n8_0() {
  static constexpr BlockFormat format = {
      .name = "n8_0",
      .elements = 32,
      .bytes = 36,
      .code = "u8[4 + i] ^ 128",
      .zero = 128,
      .group = 32,
      .d = "f32[0]",
  };
  return format;
}

}  // namespace quern
