// iq3_s: f16 d; for each four elements a byte, the low bits of the number of an entry of a grid; 8 bytes of their ninth
// bits; 32 bytes of signs; 4 bytes of nibbles, scales of groups of 32. An entry is the levels of four elements, a
// nibble each.
#include "base/block_format.h"
#include "base/formats/grids.h"

namespace quern {
namespace {

constexpr int8_t kLevels[] = {1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15};

}  // namespace

const BlockFormat& Format_iq3_s() {
  static constexpr BlockFormat format = {
      .name = "iq3_s",
      .gguf_type = 21,
      .gguf_name = "IQ3_S",
      .elements = 256,
      .bytes = 110,
      .code =
          "grid[u8[2 + i / 4] | (u8[66 + i / 32] >> i / 4 % 8 & 1) << 8] >> i % 4 * 4 & 7 | "
          "(u8[74 + i / 8] >> i % 8 & 1) << 3",
      .levels = kLevels,
      .grid = formats::kIQ3SGrid,
      .group = 32,
      .d = "f16[0]",
      .scale = "(u8[106 + i / 64] >> i / 32 % 2 * 4 & 15) * 2 + 1",
      .activation = DType::kQ8_K,
  };
  return format;
}

}  // namespace quern
