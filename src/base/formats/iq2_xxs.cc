// iq2_xxs: f16 d; for each group of 32 four bytes, numbers of entries of a grid for eight elements each, and 4 bytes of
// four times seven bits of signs and, highest, four of scale. An entry is the levels of eight elements, two bits each.
#include "base/block_format.h"
#include "base/formats/grids.h"
#include "base/formats/seven_signs.h"

namespace quern {
namespace {

constexpr int8_t kLevels[] = {8, 25, 43, 0, -8, -25, -43, 0};

}  // namespace

const BlockFormat& Format_iq2_xxs() {
  static constexpr BlockFormat format = {
      .name = "iq2_xxs",
      .gguf_type = 16,
      .gguf_name = "IQ2_XXS",
      .elements = 256,
      .bytes = 66,
      .code = "grid[u8[2 + i / 32 * 8 + i / 8 % 4]] >> i % 8 * 2 & 3 | (" QUERN_SEVEN_SIGNS("6 + i / 32 * 8") ") << 2",
      .levels = kLevels,
      .grid = formats::kIQ2XXSGrid,
      .group = 32,
      .d = "f16[0] * 0.125",
      .scale = "(u8[9 + i / 32 * 8] >> 4) * 2 + 1",
      .activation = DType::kQ8_K,
  };
  return format;
}

}  // namespace quern
