// n4_1: f32 d, f32 m; 16 bytes of nibbles as in q4_0. n4_0 with a zero point of any kind: m is -d times that.
#include "base/block_format.h"

namespace quern {

const BlockFormat& Format_n4_1() {
  static constexpr BlockFormat format = {
      .name = "n4_1",
      .elements = 32,
      .bytes = 24,
      .code = "u8[8 + i % 16] >> i / 16 * 4 & 15",
      .group = 32,
      .d = "f32[0]",
      .added = "f32[1]",
  };
  return format;
}

}  // namespace quern
