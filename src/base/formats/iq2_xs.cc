// iq2_xs: f16 d; for each eight elements 2 bytes, nine bits of which are the number of an entry of a grid and seven say
// their signs; 8 bytes of nibbles, scales of groups of 16. An entry is the levels of eight elements, two bits each.
#include "base/block_format.h"
#include "base/formats/grids.h"
#include "base/formats/seven_signs.h"

namespace quern {
namespace {

constexpr int8_t kLevels[] = {8, 25, 43, 0, -8, -25, -43, 0};

}  // namespace

const BlockFormat& Format_iq2_xs() {
  static constexpr BlockFormat format = {
      .name = "iq2_xs",
      .gguf_type = 17,
      .gguf_name = "IQ2_XS",
      .elements = 256,
      .bytes = 74,
      .code = "grid[u8[2 + i / 8 * 2] | (u8[3 + i / 8 * 2] & 1) << 8] >> i % 8 * 2 & 3 | (" QUERN_EVEN_SIGNS(
          "u8[3 + i / 8 * 2] >> 1") ") << 2",
      .levels = kLevels,
      .grid = formats::kIQ2XSGrid,
      .group = 16,
      .d = "f16[0] * 0.125",
      .scale = "(u8[66 + i / 32] >> i / 16 % 2 * 4 & 15) * 2 + 1",
      .activation = DType::kQ8_K,
  };
  return format;
}

}  // namespace quern
