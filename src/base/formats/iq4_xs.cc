// iq4_xs: f16 d; six-bit scales of groups of 32, less 32: 2 bytes of their upper two bits, 4 of their low nibbles; 16
// bytes for each group of nibbles as in iq4_nl, numbers of the same levels.
#include "base/block_format.h"

namespace quern {
namespace {

constexpr int8_t kLevels[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

}  // namespace

const BlockFormat& Format_iq4_xs() {
  static constexpr BlockFormat format = {
      .name = "iq4_xs",
      .gguf_type = 23,
      .gguf_name = "IQ4_XS",
      .elements = 256,
      .bytes = 136,
      .code = "u8[8 + i / 32 * 16 + i % 16] >> i / 16 % 2 * 4 & 15",
      .levels = kLevels,
      .group = 32,
      .d = "f16[0]",
      .scale = "(u8[4 + i / 64] >> i / 32 % 2 * 4 & 15 | (u8[2 + i / 128] >> i / 32 % 4 * 2 & 3) << 4) - 32",
      .activation = DType::kQ8_K,
  };
  return format;
}

}  // namespace quern
