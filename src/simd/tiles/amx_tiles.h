// The tile registers of AMX, as all that multiplies with them shares them out: two of rows by two of columns, and the
// four sums of each by each.
//
//   0, 1: the first 16 rows by either of columns; 2, 3: the second rows; 4, 5: rows, 64 bytes of each; 6, 7: columns
#pragma once

#if defined(__AMX_INT8__)

#include <immintrin.h>

#include <cstdint>

#include "hwy/highway.h"

namespace quern::simd {
namespace {

constexpr int64_t kRegisterRows = 16, kRegisterColumns = 16;  // at most; a column has words of four bytes

// The registers, for as long as this lives, with so many rows of the left side and columns: what they have none of is
// not used. `depth`: words along k of a step. Taking them is some 180 cycles (a Xeon).
class TileRegisters {
 public:
  HWY_INLINE TileRegisters(int64_t first, int64_t second, int64_t first_columns = kRegisterColumns,
                           int64_t second_columns = kRegisterColumns, int64_t depth = kRegisterRows) {
    Config config;
    config.Set(0, first, first_columns);
    config.Set(1, first, second_columns);
    config.Set(2, second, first_columns);
    config.Set(3, second, second_columns);
    config.Set(4, first, depth);
    config.Set(5, second, depth);
    config.Set(6, depth, first_columns);
    config.Set(7, depth, second_columns);
    _tile_loadconfig(&config);
  }
  HWY_INLINE ~TileRegisters() { _tile_release(); }  // so that a context switch need not save 8 KB of them
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;

 private:
  // What ldtilecfg reads.
  struct alignas(64) Config {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};

    HWY_INLINE void Set(int i, int64_t count, int64_t words) {
      rows[i] = static_cast<uint8_t>(words == 0 ? 0 : count);
      row_bytes[i] = static_cast<uint16_t>(count == 0 ? 0 : 4 * words);
    }
  };
};

// Sums of 16 columns of some rows: from zero, and added to c [rows, n].
HWY_INLINE void ZeroRows(float (*sums)[kRegisterColumns], int64_t rows) {
#pragma clang loop unroll(disable)
  for (int64_t r = 0; r < rows; ++r) {
    float* row = sums[r];
    asm("" : "+r"(row));  // or the loop becomes a call of memset
    _mm512_store_ps(row, _mm512_setzero_ps());
  }
}
HWY_INLINE void AddRows(float* c, int64_t c_ld, const float (*sums)[kRegisterColumns], int64_t rows, int64_t n) {
  const __mmask16 live = static_cast<__mmask16>((1 << n) - 1);
#pragma clang loop unroll(disable)
  for (int64_t r = 0; r < rows; ++r) {
    float* const to = c + r * c_ld;
    _mm512_mask_storeu_ps(to, live, _mm512_add_ps(_mm512_maskz_loadu_ps(live, to), _mm512_load_ps(sums[r])));
  }
}

}  // namespace
}  // namespace quern::simd

#endif  // __AMX_INT8__
