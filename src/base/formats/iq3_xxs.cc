// iq3_xxs: f16 d; for each four elements a byte, the number of an entry of a grid;
// for each group of 32 four bytes: four times seven bits of signs and, highest, four of scale. An entry is the
// levels of four elements, a nibble each.
#include "base/block_format.h"
#include "base/formats/grids.h"
#include "base/formats/seven_signs.h"

namespace quern {
namespace {

constexpr int8_t kLevels[] = {4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62};

}  // namespace

const BlockFormat& Format_iq3_xxs() {
  static constexpr BlockFormat format = {
      .name = "iq3_xxs",
      .gguf_type = 18,
      .gguf_name = "IQ3_XXS",
      .elements = 256,
      .bytes = 98,
      .code = "grid[u8[2 + i / 4]] >> i % 4 * 4 & 7 | (" QUERN_SEVEN_SIGNS("66 + i / 32 * 4") ") << 3",
      .levels = kLevels,
      .grid = formats::kIQ3XXSGrid,
      .group = 32,
      .d = "f16[0] * 0.25",
      .scale = "(u8[69 + i / 32 * 4] >> 4) * 2 + 1",
      .activation = DType::kQ8_K,
  };
  return format;
}

}  // namespace quern
