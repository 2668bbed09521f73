// K-quant matrix products on AMX: the frame at the level `amx`, and its panels.
//
// A tile instruction multiplies 16 rows by 16 columns over 64 elements, but flushing its sums to memory costs more than
// the product itself, so nothing may be scaled in between. Hence the panel holds code * scale as a 16-bit integer,
// split into its low and its high byte: over a whole block of 256 both planes add up in i32, exactly, and
//
//   sum_s scale_s * (codes_s . quants_s)  =  sum(low . quants) + 256 * sum(high . quants)
//
// leaves one multiplication by d for each block. Panel of k elements (bytes):
//   0      for each 64 elements: the low bytes [16][16][4] as a panel16 interleaves them, then the high bytes likewise
//   mins   with minimums: as in a panel16
//   supers f32 [K/256][16] d;  with minimums: f32 [K/256][2][16] d, then dmin
// With minimums: products 0..1953, both planes unsigned. Else (code - offset) * scale, the high plane signed.
//
// Sums of one block are scaled while the tiles multiply the next: two sets of buffers, about 10 KB of stack in all.
#pragma once

#if defined(__AMX_INT8__)

#include "simd/tiles/amx_tiles.h"
#include "simd/tiles/quant_pack256.h"

namespace quern::simd {
namespace {

template <class Format>
struct AmxPanelAt {
  int64_t mins, supers;
  explicit AmxPanelAt(int64_t k) : mins(32 * k), supers(mins + (Format::kHasMins ? k / Format::kGroup * 32 : 0)) {}
  // Where the low bytes of element j of all rows are, in units of 4 elements; the high bytes are kHighPlane further.
  static int64_t Line(int64_t j) { return j / 64 * 2048 + j % 64 / 4 * 64; }
  static constexpr int kHighPlane = 1024;
};

struct BlockSums {
  alignas(64) int32_t low[32][16], high[32][16];
};

template <class Format>
HWY_INLINE void MultiplyHigh(bool second_rows) {
  if constexpr (Format::kOffset != 0) {
    if (second_rows) {
      _tile_dpbssd(3, 5, 7);
    } else {
      _tile_dpbssd(1, 4, 7);
    }
  } else {
    if (second_rows) {
      _tile_dpbsud(3, 5, 7);
    } else {
      _tile_dpbsud(1, 4, 7);
    }
  }
}

// 64 elements of the rows at x and, if kTwo, of the 16 rows after them.
template <class Format, bool kTwo>
HWY_INLINE void MultiplyStep(const uint8_t* x, int64_t x_stride, const uint8_t* codes) {
  _tile_loadd(4, x, x_stride);
  _tile_loadd(6, codes, 64);
  _tile_dpbsud(0, 4, 6);
  _tile_loadd(7, codes + AmxPanelAt<Format>::kHighPlane, 64);
  MultiplyHigh<Format>(false);
  if constexpr (kTwo) {
    _tile_loadd(5, x + 16 * x_stride, x_stride);
    _tile_dpbsud(2, 5, 6);
    MultiplyHigh<Format>(true);
  }
}

// acc[r] += xd * (d * sums - dmin * minimums) of one block, for rows begin .. end.
template <class Format>
HWY_INLINE void FinishRows(const BlockSums& sums, float (*acc)[16], int64_t begin, int64_t end, const uint8_t* scales,
                           const uint8_t* group_sums, int64_t x_stride, const int16_t* mins, const float* supers) {
  const DF32 df;
  const DI32 di32;
  const VF32 d = hn::LoadU(df, supers);
  scales += begin * x_stride;
  group_sums += begin * x_stride;
#pragma clang loop unroll(disable)
  for (int64_t r = begin; r < end; ++r, scales += x_stride, group_sums += x_stride) {
    const VI32 low = hn::Load(di32, sums.low[r]), high = hn::Load(di32, sums.high[r]);
    VF32 value = hn::Mul(hn::ConvertTo(df, hn::Add(low, hn::ShiftLeft<8>(high))), d);
    if constexpr (Format::kHasMins) {
      VI32 sum_min = hn::Zero(di32);
      QUERN_UNROLL
      for (int pair = 0; pair < 128 / Format::kGroup; ++pair) {
        const VI16 two_sums = hn::BitCast(DI16(), hn::Set(di32, LoadScalar<int32_t>(group_sums + pair * 4)));
        sum_min = WordDot(sum_min, hn::LoadU(DI16(), mins + pair * 32), two_sums);
      }
      value = hn::NegMulAdd(hn::ConvertTo(df, sum_min), hn::LoadU(df, supers + 16), value);
    }
    const VF32 xd = hn::Set(df, LoadScalar<float>(scales));
    hn::Store(hn::MulAdd(value, xd, hn::Load(df, acc[r])), df, acc[r]);
  }
}

// c[rows, n] += x * panel^T for at most 16 rows, or with kTwo for 17 to 32. The tiles are configured for that many.
template <class Format, bool kTwo>
HWY_NOINLINE void AmxRows(float* c, int64_t c_ld, const uint8_t* x, int64_t x_stride, const uint8_t* panel,
                          int64_t rows, int64_t n, int64_t k) {
  const PlanarAt<256> planar(k);
  const AmxPanelAt<Format> at(k);
  constexpr int kSupers = Format::kHasMins ? 32 : 16, kGroups = 256 / Format::kGroup;
  const uint8_t* const group_sums = x + (kGroups == 16 ? planar.sums : planar.wide_sums);
  const auto* mins = reinterpret_cast<const int16_t*>(panel + at.mins);
  const auto* supers = reinterpret_cast<const float*>(panel + at.supers);
  BlockSums sums[2];
  alignas(64) float acc[32][16];
  ZeroRows(acc, rows);
  const int64_t blocks = k / 256;
  for (int64_t b = 0; b <= blocks; ++b) {
    BlockSums& next = sums[b % 2];
    if (b < blocks) {
      _tile_zero(0);
      _tile_zero(1);
      if constexpr (kTwo) {
        _tile_zero(2);
        _tile_zero(3);
      }
    }
    QUERN_UNROLL
    for (int part = 0; part < 4; ++part) {
      if (b < blocks) MultiplyStep<Format, kTwo>(x + b * 256 + part * 64, x_stride, panel + (b * 4 + part) * 2048);
      if (b > 0) {
        const int64_t done = b - 1;
        FinishRows<Format>(sums[done % 2], acc, rows * part / 4, rows * (part + 1) / 4, x + planar.scales + done * 4,
                           group_sums + done * kGroups * 2, x_stride, mins + done * kGroups * 16,
                           supers + done * kSupers);
      }
    }
    if (b < blocks) {
      _tile_stored(0, next.low, 64);
      _tile_stored(1, next.high, 64);
      if constexpr (kTwo) {
        _tile_stored(2, next.low[16], 64);
        _tile_stored(3, next.high[16], 64);
      }
    }
  }
  AddRows(c, c_ld, acc, rows, n);
}

// c[m, n] += x (q8_K @planar) * panel^T.
template <class Format>
HWY_INLINE void AmxMma(float* c, int64_t c_ld, const uint8_t* x, int64_t x_stride, const uint8_t* panel, int64_t m,
                       int64_t n, int64_t k) {
  int64_t row = 0;
  if (m >= 32) {
    const TileRegisters registers(16, 16);
    for (; row + 32 <= m; row += 32) {
      AmxRows<Format, true>(c + row * c_ld, c_ld, x + row * x_stride, x_stride, panel, 32, n, k);
    }
  }
  const int64_t left = m - row;
  if (left == 0) return;
  const TileRegisters registers(left < 16 ? left : 16, left < 16 ? 0 : left - 16);
  if (left > 16) {
    AmxRows<Format, true>(c + row * c_ld, c_ld, x + row * x_stride, x_stride, panel, left, n, k);
  } else {
    AmxRows<Format, false>(c + row * c_ld, c_ld, x + row * x_stride, x_stride, panel, left, n, k);
  }
}

// Stores the low and high bytes of 16-bit products of the even and the odd codes of 64 bytes.
HWY_INLINE void StorePlanes(VI16 even, VI16 odd, uint8_t* line) {
  const DI16 d;
  const VI16 low_bytes = hn::Set(d, 0x00ff);
  const VI16 low = hn::Or(hn::And(even, low_bytes), hn::ShiftLeft<8>(odd));
  const auto unsigned_even = hn::BitCast(hn::ScalableTag<uint16_t>(), even);
  const VI16 high = hn::Or(hn::BitCast(d, hn::ShiftRight<8>(unsigned_even)), hn::AndNot(low_bytes, odd));
  hn::StoreU(hn::BitCast(DU8(), low), DU8(), line);
  hn::StoreU(hn::BitCast(DU8(), high), DU8(), line + AmxPanelAt<Q4_K>::kHighPlane);
}

template <class Format>
HWY_INLINE void PackTilePanel(void* dst, const void* src, int64_t src_stride, int64_t rows, int64_t k) {
  auto* panel = static_cast<uint8_t*>(dst);
  constexpr int kGroups = 256 / Format::kGroup, kSupers = Format::kHasMins ? 32 : 16;
  const AmxPanelAt<Format> at(k);
  auto* mins = reinterpret_cast<uint32_t*>(panel + at.mins);
  auto* supers = reinterpret_cast<float*>(panel + at.supers);
  BlockColumns<Format> columns(src, src_stride, rows);
  for (int64_t b = 0; b < k / 256; ++b) {
    const BlockColumn column = columns.At(b);
    alignas(64) int32_t scales[kGroups][16];
    PackHeader<Format>(column, HeaderAt<true, true>{scales, mins + b * kGroups * 8, supers + b * kSupers});
    ForCodes<Format>(column, [&](VU8 codes, int j, int) {
      const VI16 words = hn::BitCast(DI16(), Quants<Format, false>(DU8(), codes)),
                 offset = hn::Set(DI16(), Format::kOffset);
      const VI16 even = hn::Sub(hn::And(words, hn::Set(DI16(), 255)), offset);
      const VI16 odd =
          hn::Sub(hn::BitCast(DI16(), hn::ShiftRight<8>(hn::BitCast(hn::ScalableTag<uint16_t>(), words))), offset);
      const VI16 scale = hn::BitCast(DI16(), hn::Load(DI32(), scales[j / Format::kGroup]));
      StorePlanes(hn::Mul(even, scale), hn::Mul(odd, scale), panel + AmxPanelAt<Format>::Line(b * 256 + j));
    });
  }
}

}  // namespace
}  // namespace quern::simd

#define QUERN_TILE_PANEL(Format)                                                       \
  (void* dst, int64_t, const void* src, int64_t src_stride, int64_t rows, int64_t k) { \
    quern::simd::PackTilePanel<quern::simd::Format>(dst, src, src_stride, rows, k);    \
  }

#endif  // __AMX_INT8__
