// iq1_s: f16 d; for each eight elements a byte, the low bits of the number of an entry of a grid; for each group of 32
// two bytes: four times the upper three bits, three bits of scale, and whether an eighth is taken away or added.
#include "base/block_format.h"
#include "base/formats/grids.h"

namespace quern {
namespace {

// Eighths: of codes 0 to 2, -1 to 1, with an eighth more, then with an eighth less.
constexpr int8_t kLevels[] = {-7, 1, 9, 0, -9, -1, 7, 0};

}  // namespace

const BlockFormat& Format_iq1_s() {
  static constexpr BlockFormat format = {
      .name = "iq1_s",
      .gguf_type = 19,
      .gguf_name = "IQ1_S",
      .elements = 256,
      .bytes = 50,
      .code =
          "grid[u8[2 + i / 8] | ((u8[34 + i / 32 * 2] | u8[35 + i / 32 * 2] << 8) >> i / 8 % 4 * 3 & 7) << 8] >> i % 8 "
          "* 2 & 3 "
          "| u8[35 + i / 32 * 2] >> 7 << 2",
      .levels = kLevels,
      .grid = formats::kIQ1Grid,
      .group = 32,
      .d = "f16[0] * 0.125",
      .scale = "(u8[35 + i / 32 * 2] >> 4 & 7) * 2 + 1",
      .activation = DType::kQ8_K,
  };
  return format;
}

}  // namespace quern
