// tq1_0: codes of -1, 0 and 1 as digits of base three, five to a byte of 48, then four to each of 4; f16 d. A byte is
// the fraction, of 256, that its digits make, the first the most significant: times three, digit by digit, what goes
// over 255 is the next. 32 bytes hold elements 0 to 159, byte m those of m, m + 32, ..., 16 the next 80, 4 the rest.
#include "base/block_format.h"

namespace quern {

const BlockFormat& Format_tq1_0() {
  static constexpr BlockFormat format = {
      .name = "tq1_0",
      .gguf_type = 34,
      .gguf_name = "TQ1_0",
      .elements = 256,
      .bytes = 54,
      // The byte, times a power of three: 1, 3, 9 and 27 are the bytes of a number, 81 is their last times three.
      .code =
          "(u8[select(i < 160, i % 32, select(i < 240, 32 + i % 16, 48 + i % 4))] * "
          "(453575425 >> select(i < 160, i / 32, select(i < 240, i / 16, i / 4)) % 5 % 4 * 8 & 255) * "
          "select(select(i < 160, i / 32, select(i < 240, i / 16, i / 4)) % 5 == 4, 81, 1) & 255) * 3 >> 8",
      .zero = 1,
      .group = 256,
      .d = "f16[26]",
  };
  return format;
}

}  // namespace quern
