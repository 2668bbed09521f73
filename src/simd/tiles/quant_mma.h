// The frame of the qk_mma_q* tiles: c[m, n] += activations (planar) * weights (panel16)^T, in blocks of up to kMmaRows rows
// by the 16 columns of a panel.
//
// Multiplied are 4 bytes of a row, the same for all columns, with 4 codes of each column: an accumulator lane is a column.
//   i32 += u8 codes . i8 quants     one instruction where the machine has it (kByteDot)
//   i16 += pairs of products        elsewhere, as long as the sum of a group fits i16, then widened
#pragma once

#include "simd/tiles/quant_layout.h"
#include "simd/tiles/quant_vector.h"

namespace quern::simd {
namespace {

inline constexpr int kMmaRows = kBytes == 64 ? 12 : kBytes == 32 ? 4 : 2;
inline constexpr int kColumnVectors = 16 / kLanes;

// The rows of a block by few base pointers: row r is at [base[r / 3] + r % 3 * stride], which the addressing modes say.
template <int M>
struct RowPointers {
  const uint8_t* base[(M + 2) / 3];
  int64_t stride;
  HWY_INLINE RowPointers(const uint8_t* x, int64_t x_stride) : stride(x_stride) {
    for (int i = 0; i < (M + 2) / 3; ++i) base[i] = x + i * 3 * x_stride;
  }
  HWY_INLINE const uint8_t* At(int r) const { return base[r / 3] + r % 3 * stride; }
};

// c[m, n] += tile, n <= 16.
template <int M>
HWY_INLINE void AddTile(float* c, int64_t c_ld, const VF32 (*tile)[kColumnVectors], int64_t n) {
  const DF32 d;
  if (n == 16) {
    for (int r = 0; r < M; ++r) {
      for (int v = 0; v < kColumnVectors; ++v) {
        float* at = c + r * c_ld + v * kLanes;
        hn::StoreU(hn::Add(hn::LoadU(d, at), tile[r][v]), d, at);
      }
    }
    return;
  }
  alignas(64) float row[16];
  for (int r = 0; r < M; ++r) {
    for (int v = 0; v < kColumnVectors; ++v) hn::Store(tile[r][v], d, row + v * kLanes);
    for (int64_t j = 0; j < n; ++j) c[r * c_ld + j] += row[j];
  }
}

// Cuts m rows into blocks of nearly equal size, at most kMmaRows, and calls f.operator()<rows>(first_row) for each.
template <class F>
HWY_INLINE void ForRowBlocks(int64_t m, const F& f) {
  const int64_t blocks = (m + kMmaRows - 1) / kMmaRows;
  int64_t row = 0;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t end = m * (i + 1) / blocks;
    const int64_t first = row;
    DispatchRows<kMmaRows>(end - row, [&]<int M>() { f.template operator()<M>(first); });
    row = end;
  }
}

// One accumulator of a group's integer products: i32 lanes with byte dots, else i16 pairs.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
using VSum = VI32;
HWY_INLINE VSum ZeroSum() { return hn::Zero(DI32()); }
HWY_INLINE VSum AddProducts(VSum sum, VU8 codes, VI8 quants) { return ByteDot(sum, codes, quants); }
HWY_INLINE VI32 WideSum(VSum sum) { return sum; }
#else
using VSum = VI16;
HWY_INLINE VSum ZeroSum() { return hn::Zero(DI16()); }
HWY_INLINE VSum AddProducts(VSum sum, VU8 codes, VI8 quants) { return hn::Add(sum, PairDot(codes, quants)); }
HWY_INLINE VI32 WideSum(VSum sum) { return MulPairs(sum, hn::Set(DI16(), 1)); }
#endif

HWY_INLINE VI8 Broadcast4(const uint8_t* at) {
  return hn::BitCast(DI8(), hn::Set(DI32(), LoadScalar<int32_t>(at)));
}

}  // namespace
}  // namespace quern::simd
