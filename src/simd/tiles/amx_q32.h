// Products of blocks of 32 by 32 rows on AMX: those of qk_mma_q8_0 and its like at the level `amx`.
//
// A tile instruction multiplies 16 rows by 16 columns over the 32 elements of a block, half of what it could, since
// every block has scales of its own. Its sums go through memory to vector registers, where they are scaled as those of
// vpdpbusd are, with the same bits. The panel is a panel16, whose codes become bytes with their sign on the way.
//
//   for each block of 32:  acc[r] += d * xd[r] * (codes . quants) + added * xd[r] * sum(quants)
//
// What has been stored a moment ago tile loads do not get from the store, they wait for it, and so do loads of what a
// tile has stored. So blocks go through three stages in runs: codes get their sign, two runs ahead; are multiplied, a
// run ahead; and sums are scaled. A longer run would not stay in the first cache beside rows and panel.
#pragma once

#if defined(__AMX_INT8__)

#include "simd/tiles/amx_tiles.h"
#include "simd/tiles/quant_mma.h"

namespace quern::simd {
namespace {

constexpr int kRunBlocks = 2;        // of a run
constexpr int kRunsAhead = 3;        // that rows are asked for before they are multiplied
constexpr int kBlockBytes = 8 * 64;  // of a block of a panel: lines of 4 codes of each of 16 columns

struct alignas(64) RunCodes {
  uint8_t at[kRunBlocks][kBlockBytes];
};
struct alignas(64) RunSums {
  int32_t at[2][kRunBlocks][kRegisterRows][16];  // of the first 16 rows, then of the others
};

// Blocks [first, first + count) of a product.
struct BlockRun {
  int64_t first, count;
  HWY_INLINE BlockRun(int64_t run, int64_t blocks)
      : first(run * kRunBlocks), count(blocks - first < kRunBlocks ? blocks - first : kRunBlocks) {}
};

// Codes as the numbers that they stand for.
template <class Format>
HWY_INLINE void SignCodes(const uint8_t* panel, const BlockRun& run, RunCodes& codes) {
  const DU8 d;
  const uint8_t* from = panel + run.first * kBlockBytes;
#pragma clang loop unroll(disable)
  for (int64_t b = 0; b < run.count; ++b, from += kBlockBytes) {
    QUERN_UNROLL
    for (int at = 0; at < kBlockBytes; at += 64) {
      VU8 line = Quants<Format, true>(d, hn::LoadU(d, from + at));
      if constexpr (Format::kLevels == nullptr) line = hn::Sub(line, hn::Set(d, Format::kOffset));
      hn::Store(line, d, codes.at[b] + at);
    }
  }
}

HWY_INLINE void MultiplyRun(const uint8_t* x, int64_t x_stride, const RunCodes& codes, const BlockRun& run,
                            RunSums& sums) {
  x += run.first * 32;
#pragma clang loop unroll(disable)
  for (int64_t b = 0; b < run.count; ++b, x += 32) {
    _tile_loadd(6, codes.at[b], 64);
    _tile_loadd(4, x, x_stride);
    _tile_zero(0);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(5, x + kRegisterRows * x_stride, x_stride);
    _tile_zero(2);
    _tile_dpbssd(2, 5, 6);
    _tile_stored(0, sums.at[0][b], 64);
    _tile_stored(2, sums.at[1][b], 64);
  }
}

// Where scales are: those of a panel, and in a row of activations, in bytes from its begin.
template <class Format>
struct ScalesAt {
  const float *scales, *added;
  int64_t of_row, sums_of_row;
  HWY_INLINE ScalesAt(const uint8_t* panel, int64_t k)
      : scales(reinterpret_cast<const float*>(panel + PanelAt<Format>(k).scales)),
        added(reinterpret_cast<const float*>(panel + PanelAt<Format>(k).supers)),
        of_row(PlanarAt<32>(k).scales),
        sums_of_row(PlanarAt<32>(k).sums) {}
};

// acc += a run of 16 rows, the first of which is at x: products[b][r] are those of block b of row r. Asks for what the
// rows have some runs ahead.
template <class Format>
HWY_INLINE void ScaleRun(float (*acc)[16], const int32_t (*products)[kRegisterRows][16], const BlockRun& run,
                         const uint8_t* x, int64_t x_stride, const ScalesAt<Format>& at,
                         const ScaledSums<kRegisterRows>& sums) {
  constexpr int kAsked = kRegisterRows / kRunBlocks;  // rows with each block; of each a line, in which a run is
  const DF32 df;
  VF32 sum[kRegisterRows];
  QUERN_UNROLL
  for (int r = 0; r < kRegisterRows; ++r) sum[r] = hn::Load(df, acc[r]);
  RowPointers<kRegisterRows> scales(x + at.of_row + run.first * 4, x_stride);
  const uint8_t* far = x + (run.first + kRunsAhead * kRunBlocks) * 32;
#pragma clang loop unroll(disable)
  for (int64_t b = 0; b < run.count; ++b) {
    QUERN_UNROLL
    for (int r = 0; r < kAsked; ++r, far += x_stride) __builtin_prefetch(far);
    const int64_t block = run.first + b;
    const VF32 d = hn::LoadU(df, at.scales + block * 16);
    QUERN_UNROLL
    for (int r = 0; r < kRegisterRows; ++r) {
      const VF32 scale = hn::Mul(d, hn::Set(df, LoadScalar<float>(scales.At(r))));
      sum[r] = hn::MulAdd(hn::ConvertTo(df, hn::Load(DI32(), products[b][r])), scale, sum[r]);
    }
    scales.Advance(4);
    if constexpr (Format::kAdded) {
      const VF32 each = hn::LoadU(df, at.added + block * 16);
      QUERN_UNROLL
      for (int r = 0; r < kRegisterRows; ++r) sum[r] = hn::MulAdd(each, hn::Set(df, sums.at[r][block % 16]), sum[r]);
    }
  }
  QUERN_UNROLL
  for (int r = 0; r < kRegisterRows; ++r) hn::Store(sum[r], df, acc[r]);
}

// c[32, n] += x * panel^T. The tiles are configured for 16 rows and 16 more, and for 8 words along k.
template <class Format>
HWY_NOINLINE void AmxRows32(float* c, int64_t c_ld, const uint8_t* x, int64_t x_stride, const uint8_t* panel, int64_t n,
                            int64_t k) {
  const ScalesAt<Format> at(panel, k);
  RunCodes codes[2];
  RunSums products[2];
  [[maybe_unused]] ScaledSums<kRegisterRows> sums[2];
  alignas(64) float acc[2 * kRegisterRows][16];
  ZeroRows(acc, 2 * kRegisterRows);
  const int64_t blocks = k / 32, runs = (blocks + kRunBlocks - 1) / kRunBlocks;
#pragma clang loop unroll(disable)
  for (int64_t run = -2; run < runs; ++run) {
    if (run + 2 < runs) SignCodes<Format>(panel, {run + 2, blocks}, codes[run & 1]);
    if (run >= -1 && run + 1 < runs)
      MultiplyRun(x, x_stride, codes[(run + 1) & 1], {run + 1, blocks}, products[(run + 1) & 1]);
    if (run < 0) continue;
    const BlockRun blocks_of_run(run, blocks);
#pragma clang loop unroll(disable)
    for (int half = 0; half < 2; ++half) {
      const uint8_t* const rows = x + half * kRegisterRows * x_stride;
      if constexpr (Format::kAdded) {
        const int64_t first = blocks_of_run.first;
        if (first % 16 == 0) sums[half].Load(rows + at.sums_of_row + first * 2, rows + at.of_row + first * 4, x_stride);
      }
      ScaleRun<Format>(acc + half * kRegisterRows, products[run & 1].at[half], blocks_of_run, rows, x_stride, at,
                       sums[half]);
    }
  }
  AddRows(c, c_ld, acc, 2 * kRegisterRows, n);
}

// c[m - m % 32, n] += x * panel^T; gives how many rows these are. Fewer would leave tiles empty.
template <class Format>
HWY_INLINE int64_t AmxMma32(float* c, int64_t c_ld, const uint8_t* x, int64_t x_stride, const uint8_t* panel, int64_t m,
                            int64_t n, int64_t k) {
  constexpr int64_t kRows = 2 * kRegisterRows;
  if (m < kRows) return 0;
  const TileRegisters registers(kRegisterRows, kRegisterRows, kRegisterColumns, kRegisterColumns, 8);
  int64_t row = 0;
  for (; row + kRows <= m; row += kRows)
    AmxRows32<Format>(c + row * c_ld, c_ld, x + row * x_stride, x_stride, panel, n, k);
  return row;
}

}  // namespace
}  // namespace quern::simd

#endif  // __AMX_INT8__
