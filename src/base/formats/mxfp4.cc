// mxfp4: a byte of exponent; 16 bytes of nibbles as in q4_0, each a float of one sign bit, two of exponent and one of
// mantissa (OCP microscaling). Levels are twice those floats, the power half as great.
#include "base/block_format.h"

namespace quern {
namespace {

constexpr int8_t kLevels[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace

const BlockFormat& Format_mxfp4() {
  static constexpr BlockFormat format = {
      .name = "mxfp4",
      .gguf_type = 39,
      .gguf_name = "MXFP4",
      .elements = 32,
      .bytes = 17,
      .code = "u8[1 + i % 16] >> i / 16 * 4 & 15",
      .levels = kLevels,
      .group = 32,
      .d = "e8[0]",
      .activation = DType::kQ8_0,
  };
  return format;
}

}  // namespace quern
