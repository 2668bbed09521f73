// iq1_m: for each eight elements a byte, the low bits of the number of an entry of a grid, and a nibble: three upper
// bits, and whether an eighth is taken away or added; then four words of 16 bits, each four times three bits, scales of
// groups of 16, and four bits of d, a half.
#include "base/block_format.h"
#include "base/formats/grids.h"

namespace quern {
namespace {

// Eighths: of codes 0 to 2, -1 to 1, with an eighth more, then with an eighth less.
constexpr int8_t kLevels[] = {-7, 1, 9, 0, -9, -1, 7, 0};

}  // namespace

const BlockFormat& Format_iq1_m() {
  static constexpr BlockFormat format = {
      .name = "iq1_m",
      .gguf_type = 29,
      .gguf_name = "IQ1_M",
      .elements = 256,
      .bytes = 56,
      .code =
          "grid[u8[i / 8] | (u8[32 + i / 16] >> i / 8 % 2 * 4 & 7) << 8] >> i % 8 * 2 & 3 | "
          "(u8[32 + i / 16] >> i / 8 % 2 * 4 + 3 & 1) << 2",
      .levels = kLevels,
      .grid = formats::kIQ1Grid,
      .group = 16,
      .d = "half[u8[49] >> 4 | u8[51] >> 4 << 4 | u8[53] >> 4 << 8 | u8[55] >> 4 << 12] * 0.125",
      .scale = "((u8[48 + i / 64 * 2] | u8[49 + i / 64 * 2] << 8) >> i / 16 % 4 * 3 & 7) * 2 + 1",
      .activation = DType::kQ8_K,
  };
  return format;
}

}  // namespace quern
