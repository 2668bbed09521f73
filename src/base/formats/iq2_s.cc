// iq2_s: f16 d; for each eight elements a byte, the low bits of the number of an entry of a grid; for each a byte of
// signs; 8 bytes of upper two bits of those numbers; 8 bytes of nibbles, scales of groups of 16. An entry is the levels
// of eight elements, two bits each.
#include "base/block_format.h"
#include "base/formats/grids.h"

namespace quern {
namespace {

constexpr int8_t kLevels[] = {8, 25, 43, 0, -8, -25, -43, 0};

}  // namespace

const BlockFormat& Format_iq2_s() {
  static constexpr BlockFormat format = {
      .name = "iq2_s",
      .gguf_type = 22,
      .gguf_name = "IQ2_S",
      .elements = 256,
      .bytes = 82,
      .code =
          "grid[u8[2 + i / 8] | (u8[66 + i / 32] >> i / 8 % 4 * 2 & 3) << 8] >> i % 8 * 2 & 3 | "
          "(u8[34 + i / 8] >> i % 8 & 1) << 2",
      .levels = kLevels,
      .grid = formats::kIQ2SGrid,
      .group = 16,
      .d = "f16[0] * 0.125",
      .scale = "(u8[74 + i / 32] >> i / 16 % 2 * 4 & 15) * 2 + 1",
      .activation = DType::kQ8_K,
  };
  return format;
}

}  // namespace quern
