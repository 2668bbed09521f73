// Products of blocks of 32 by 16 rows on AMX: those of qk_mma_q8_0 and its like at the level `amx`, and their panels.
//
// A tile instruction multiplies 16 rows by 16 columns over the 32 elements of a block, half of what it could, since
// every block has scales of its own. Its sums go through memory to vector registers, where they are scaled as those of
// vpdpbusd are, with the same bits:
//
//   for each block of 32:  c[r] += d * xd[r] * (codes . quants) + added * xd[r] * sum(quants)
//
// What has been stored a moment ago does not come from the store, neither to a tile nor from one: it is waited for. So
// a block is multiplied while the one before it is stored and the one before that is scaled. And while a tile
// instruction is at work, vectors of 64 bytes have one of their two ports, so that scaling is what takes the time: 48
// instructions for 16 rows, beside 30 cycles of tiles. Sums of rows stay in registers for that, from the first block to
// the last.
//
// The panel is a panel16, but that its codes are the numbers they stand for, with their sign.
#pragma once

#if defined(__AMX_INT8__)

#include <type_traits>

#include "simd/tiles/amx_tiles.h"
#include "simd/tiles/quant_mma.h"
#include "simd/tiles/quant_pack32.h"

namespace quern::simd {
namespace {

constexpr int kBlockBytes = 8 * 64;  // of a block of a panel: lines of 4 codes of each of 16 columns

using BlockSums32 = int32_t[kRegisterRows][kRegisterColumns];

// A block of the codes by one of the rows, to the sums kTile.
template <int kTile>
HWY_INLINE void MultiplyBlock(const uint8_t* x, int64_t x_stride, const uint8_t* codes) {
  _tile_loadd(6 + kTile, codes, 64);
  _tile_loadd(4 + kTile, x, x_stride);
  _tile_zero(kTile);
  _tile_dpbssd(kTile, 4 + kTile, 6 + kTile);
}

// Where the numbers lie by which sums of blocks are scaled.
struct BlockScales {
  const float *d, *added;      // of a panel: [K/32][16]
  const uint8_t *rows, *sums;  // of 16 rows: f32 [K/32], and i16 [K/32]
  int64_t stride;
};

// xd * sum(quants) of 16 blocks of each row, where something is added to them. Beside a RowScaler and not in it: what
// that holds would be in memory with what is indexed here.
struct NoSums {};
template <bool kAdded, int kRows>
using RowSums = std::conditional_t<kAdded, ScaledSums<kRows>, NoSums>;

// Walks along k with the sums of kRows rows, those of a tile from kFirst on.
template <bool kAdded, int kFirst, int kRows>
class RowScaler {
 public:
  HWY_INLINE explicit RowScaler(const BlockScales& at) : at_(at), rows_(at.rows, at.stride) {}

  // Adds the products of the next block, which is `block` of all.
  HWY_INLINE void Add(const BlockSums32& products, [[maybe_unused]] int64_t block,
                      [[maybe_unused]] RowSums<kAdded, kRows>& sums, VF32 (&sum)[kRows]) {
    const DF32 df;
    const VF32 d = hn::LoadU(df, at_.d);
    [[maybe_unused]] VF32 added;
    if constexpr (kAdded) {
      if (block % 16 == 0) sums.Load(at_.sums + block * 2, at_.rows + block * 4, at_.stride);
      added = hn::LoadU(df, at_.added);
    }
    QUERN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const VF32 scale = hn::Mul(d, hn::Set(df, LoadScalar<float>(rows_.At(r))));
      const VI32 product = hn::Load(DI32(), products[kFirst + r]);
      sum[r] = hn::MulAdd(hn::ConvertTo(df, product), scale, sum[r]);
      if constexpr (kAdded) sum[r] = hn::MulAdd(added, hn::Set(df, sums.at[r][block % 16]), sum[r]);
      asm volatile("" : "+v"(sum[r].raw));  // or additions are put off until registers do not hold what they add
    }
    at_.d += 16;
    if constexpr (kAdded) at_.added += 16;
    rows_.Advance(4);
    for (const uint8_t*& base : rows_.base) asm volatile("" : "+r"(base));
  }

 private:
  BlockScales at_;
  RowPointers<kRows> rows_;
};

// c[kRows, live] += x * panel^T for the rows of a tile from kFirst on, of which the first `skip` are left as they are.
// x is at the first row of the tile.
template <bool kAdded, int kFirst, int kRows>
HWY_NOINLINE void AmxRows(float* c, int64_t c_ld, __mmask16 live, int64_t skip, const uint8_t* x, int64_t x_stride,
                          const uint8_t* codes, const BlockScales& scales, int64_t blocks) {
  alignas(64) BlockSums32 even, odd;
  RowScaler<kAdded, kFirst, kRows> scaler(scales);
  RowSums<kAdded, kRows> sums;
  VF32 sum[kRows];
  QUERN_UNROLL
  for (int r = 0; r < kRows; ++r) sum[r] = VF32{_mm512_maskz_loadu_ps(live, c + r * c_ld)};
  MultiplyBlock<0>(x, x_stride, codes);
  _tile_stored(0, even, 64);
  if (blocks > 1) MultiplyBlock<1>(x + 32, x_stride, codes + kBlockBytes);
  int64_t b = 0;
#pragma clang loop unroll(disable)
  for (; b + 3 < blocks; b += 2) {
    x += 64, codes += 2 * kBlockBytes;
    MultiplyBlock<0>(x, x_stride, codes);
    _tile_stored(1, odd, 64);
    scaler.Add(even, b, sums, sum);
    MultiplyBlock<1>(x + 32, x_stride, codes + kBlockBytes);
    _tile_stored(0, even, 64);
    scaler.Add(odd, b + 1, sums, sum);
  }
  // Up to three are left: one that is stored, one that is multiplied, and one more.
  const int64_t left = blocks - b;
  if (left > 2) MultiplyBlock<0>(x + 64, x_stride, codes + 2 * kBlockBytes);
  if (left > 1) _tile_stored(1, odd, 64);
  scaler.Add(even, b, sums, sum);
  if (left > 2) _tile_stored(0, even, 64);
  if (left > 1) scaler.Add(odd, b + 1, sums, sum);
  if (left > 2) scaler.Add(even, b + 2, sums, sum);
  QUERN_UNROLL
  for (int r = 0; r < kRows; ++r)
    _mm512_mask_storeu_ps(c + r * c_ld, static_cast<__mmask16>(r < skip ? 0 : live), sum[r].raw);
}

// The same of fewer rows than a tile has: sums and scales of kRows lie in a place of their own.
template <bool kAdded, int kRows>
HWY_NOINLINE void AmxFewRows(float* c, int64_t c_ld, __mmask16 live, const uint8_t* x, int64_t x_stride,
                             const uint8_t* codes, const BlockScales& of, int64_t blocks, int64_t rows) {
  constexpr int64_t kMost = 32;  // blocks at a time
  struct alignas(64) Row {
    float scales[kMost];
    int16_t sums[kMost];
  };
  Row here[kRows] = {};
  alignas(64) float sums[kRows][16] = {};
  const TileRegisters registers(rows, rows, kRegisterColumns, kRegisterColumns, 8);
#pragma clang loop unroll(disable)
  for (int64_t r = 0; r < rows; ++r) _mm512_store_ps(sums[r], _mm512_maskz_loadu_ps(live, c + r * c_ld));
  for (int64_t first = 0; first < blocks; first += kMost) {
    const int64_t count = std::min(blocks - first, kMost);
    const auto there = static_cast<__mmask32>((uint64_t{1} << count) - 1);
#pragma clang loop unroll(disable)
    for (int64_t r = 0; r < rows; ++r) {
      const uint8_t* const scales = of.rows + r * of.stride + first * 4;
      _mm512_store_ps(here[r].scales, _mm512_maskz_loadu_ps(static_cast<__mmask16>(there), scales));
      _mm512_store_ps(here[r].scales + 16, _mm512_maskz_loadu_ps(static_cast<__mmask16>(there >> 16), scales + 64));
      if constexpr (kAdded)
        _mm512_store_si512(here[r].sums, _mm512_maskz_loadu_epi16(there, of.sums + r * of.stride + first * 2));
    }
    const BlockScales scales = {of.d + first * 16, of.added + first * 16, reinterpret_cast<uint8_t*>(here[0].scales),
                                reinterpret_cast<uint8_t*>(here[0].sums), sizeof(Row)};
    AmxRows<kAdded, 0, kRows>(sums[0], 16, live, 0, x + first * 32, x_stride, codes + first * kBlockBytes, scales,
                              count);
  }
#pragma clang loop unroll(disable)
  for (int64_t r = 0; r < rows; ++r) _mm512_mask_storeu_ps(c + r * c_ld, live, _mm512_load_ps(sums[r]));
}

// Calls f.operator()<kRows>() with the least of 4, 8, 12 and 16 that is `rows` or more.
template <class F>
HWY_INLINE void WithFourths(int64_t rows, const F& f) {
  switch ((rows + 3) / 4) {
    case 1: return f.template operator()<4>();
    case 2: return f.template operator()<8>();
    case 3: return f.template operator()<12>();
    default: return f.template operator()<16>();
  }
}

// c[m, n] += x * panel^T. What is left behind whole tiles are the last rows of one that begins before.
template <class Format>
HWY_INLINE void AmxMma32(float* c, int64_t c_ld, const uint8_t* x, int64_t x_stride, const uint8_t* panel, int64_t m,
                         int64_t n, int64_t k) {
  constexpr bool kAdded = Format::kAdded;
  const PanelAt<Format> of_panel(k);
  const PlanarAt<32> of_row(k);
  const __mmask16 live = static_cast<__mmask16>((1 << n) - 1);
  const int64_t blocks = k / 32;
  const auto scales_from = [&](int64_t row) {
    const uint8_t* const at = x + row * x_stride;
    return BlockScales{reinterpret_cast<const float*>(panel + of_panel.scales),
                       reinterpret_cast<const float*>(panel + of_panel.supers), at + of_row.scales, at + of_row.sums,
                       x_stride};
  };
  if (m < kRegisterRows) {
    WithFourths(m, [&]<int kRows>() {
      AmxFewRows<kAdded, kRows>(c, c_ld, live, x, x_stride, panel, scales_from(0), blocks, m);
    });
    return;
  }
  const TileRegisters registers(kRegisterRows, kRegisterRows, kRegisterColumns, kRegisterColumns, 8);
  int64_t row = 0;
  for (; row + kRegisterRows <= m; row += kRegisterRows)
    AmxRows<kAdded, 0, kRegisterRows>(c + row * c_ld, c_ld, live, 0, x + row * x_stride, x_stride, panel,
                                      scales_from(row), blocks);
  const int64_t left = m - row;
  if (left == 0) return;
  WithFourths(left, [&]<int kRows>() {
    AmxRows<kAdded, kRegisterRows - kRows, kRows>(c + (m - kRows) * c_ld, c_ld, live, kRows - left,
                                                  x + (m - kRegisterRows) * x_stride, x_stride, panel,
                                                  scales_from(m - kRows), blocks);
  });
}

}  // namespace
}  // namespace quern::simd

#endif  // __AMX_INT8__
