// n8_1: f32 d, f32 m; 32 bytes, each a code without a sign. As n4_1, of 8 bits.
#include "base/block_format.h"

namespace quern {

const BlockFormat& Format_n8_1() {
  static constexpr BlockFormat format = {
      .name = "n8_1",
      .elements = 32,
      .bytes = 40,
      .code = "u8[8 + i]",
      .group = 32,
      .d = "f32[0]",
      .added = "f32[1]",
  };
  return format;
}

}  // namespace quern
