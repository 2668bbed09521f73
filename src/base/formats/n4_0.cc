// n4_0: f32 d; 16 bytes of nibbles as in q4_0. Weights of ONNX models that are multiplied with floats: their scales are
// no halves.
#include "base/block_format.h"

namespace quern {

const BlockFormat& Format_n4_0() {
  static constexpr BlockFormat format = {
      .name = "n4_0",
      .elements = 32,
      .bytes = 20,
      .code = "u8[4 + i % 16] >> i / 16 * 4 & 15",
      .zero = 8,
      .group = 32,
      .d = "f32[0]",
  };
  return format;
}

}  // namespace quern
