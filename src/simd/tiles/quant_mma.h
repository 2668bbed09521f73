// The frame of the qk_mma_q* tiles: c[m, n] += activations (planar) * weights (panel16)^T, in blocks of up to kMmaRows
// rows by the 16 columns of a panel.
//
// Multiplied are 4 bytes of a row, the same for all columns, with 4 codes of each column: an accumulator lane is a
// column.
//   i32 += u8 codes . i8 quants     one instruction where the machine has it (kByteDot)
//   i16 += pairs of products        elsewhere, as many as fit i16, then widened
#pragma once

#include <algorithm>

#include "simd/tiles/quant_block32.h"
#include "simd/tiles/quant_layout.h"
#include "simd/tiles/quant_vector.h"

namespace quern::simd {
namespace {

constexpr int kMmaRows = kBytes == 64 ? 12 : kBytes == 32 ? 4 : 2;
constexpr int kColumnVectors = 16 / kLanes;

// The rows of a block by few base pointers: row r is at [base[r / 3] + r % 3 * stride], which the addressing modes say.
template <int M>
struct RowPointers {
  const uint8_t* base[(M + 2) / 3];
  int64_t stride;
  HWY_INLINE RowPointers(const uint8_t* x, int64_t x_stride) : stride(x_stride) {
    QUERN_UNROLL
    for (int i = 0; i < (M + 2) / 3; ++i) base[i] = x + i * 3 * x_stride;
  }
  HWY_INLINE void Advance(int64_t bytes) {
    for (auto& at : base) at += bytes;
  }
  HWY_INLINE const uint8_t* At(int r) const { return base[r / 3] + r % 3 * stride; }
};

// Calls f(row, vector of columns) for all of a tile of M rows.
template <int M, class F>
HWY_INLINE void ForTile(const F& f) {
  QUERN_UNROLL
  for (int r = 0; r < M; ++r) {
    QUERN_UNROLL
    for (int v = 0; v < kColumnVectors; ++v) f(r, v);
  }
}

// c[m, n] += tile, n <= 16.
template <int M>
HWY_INLINE void AddTile(float* c, int64_t c_ld, const VF32 (*tile)[kColumnVectors], int64_t n) {
  const DF32 d;
  if (n == 16) {
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) {
      QUERN_UNROLL
      for (int v = 0; v < kColumnVectors; ++v) {
        float* at = c + r * c_ld + v * kLanes;
        hn::StoreU(hn::Add(hn::LoadU(d, at), tile[r][v]), d, at);
      }
    }
    return;
  }
  alignas(64) float row[16];
  QUERN_UNROLL
  for (int r = 0; r < M; ++r) {
    QUERN_UNROLL
    for (int v = 0; v < kColumnVectors; ++v) hn::Store(tile[r][v], d, row + v * kLanes);
#pragma clang loop unroll(disable) vectorize(disable)  // the last panel alone is cut short: little code is worth more
    for (int64_t j = 0; j < n; ++j) c[r * c_ld + j] += row[j];
  }
}

// Cuts m rows into blocks of nearly equal size, at most kMost, and calls f.operator()<rows>(first_row) for each.
template <int kMost, class F>
HWY_INLINE void ForRowBlocks(int64_t m, const F& f) {
  const int64_t blocks = (m + kMost - 1) / kMost;
  int64_t row = 0;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t end = m * (i + 1) / blocks;
    const int64_t first = row;
    DispatchRows<kMost>(end - row, [&]<int M>() { f.template operator()<M>(first); });
    row = end;
  }
}

// Elements whose products are added up at once: a group, of which a whole block would be long.
template <class Format>
constexpr int kGroupRun = std::min(Format::kGroup, 32);

// Without byte dots: how many pair products (of codes of the format with quants) an i16 lane can add up. q4: 8 * 2 * 15
// * 127; q5: 4 * 2 * 31 * 127; q6_K: 2 * 2 * 63 * 127. Codes of eight bits go back to signed, and one pair is all
// that fits.
template <class Format>
constexpr int kPairSteps = std::clamp(128 / Format::kCodes, 1, kGroupRun<Format> / 4);
template <class Format>
constexpr bool kSignedCodes = !kByteDot && Format::kCodes == 256;

HWY_INLINE VI8 Broadcast4(const uint8_t* at) { return hn::BitCast(DI8(), hn::Set(DI32(), LoadScalar<int32_t>(at))); }

// sum[r][v] = start(r, v) + codes . quants over one run (kGroupRun) of a panel: i32, exact. `panel` is at its first
// codes, `rows` at its first quants. Words of pairs of products are added by `add(sum, pairs, v)`. Without byte dots
// the steps are loops: of a run in one piece the compiler makes walks by row or by vector of columns, and what these
// share goes through the stack.
template <class Format, int M, class Start, class Add>
HWY_INLINE void SumGroup(const uint8_t* panel, const RowPointers<M>& rows, const Start& start,
                         [[maybe_unused]] const Add& add, VI32 (*sum)[kColumnVectors]) {
  constexpr int kSteps = kGroupRun<Format> / 4, kPairs = kPairSteps<Format>;
  const DU8 d;
  const auto codes_at = [&](int step, int v) {
    const VU8 codes = Quants<Format, kSignedCodes<Format>>(d, hn::LoadU(d, panel + step * 64 + v * kBytes));
    return kSignedCodes<Format> && Format::kLevels == nullptr ? hn::Xor(codes, hn::Set(d, 0x80)) : codes;
  };
  const auto quants_at = [&](int step, int r) { return Broadcast4(rows.At(r) + step * 4); };
  const auto pair_dot = [](VU8 codes, VI8 quants) {
    return kSignedCodes<Format> ? SignedPairDot(hn::BitCast(DI8(), codes), quants) : PairDot(codes, quants);
  };
  if constexpr (kByteDot) {
    ForTile<M>([&](int r, int v) { sum[r][v] = start(r, v); });
    QUERN_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const VU8 codes = codes_at(step, 0);
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) sum[r][0] = ByteDot(sum[r][0], codes, quants_at(step, r));
    }
  } else if constexpr (kPairs <= 2) {
    ForTile<M>([&](int r, int v) { sum[r][v] = start(r, v); });
#pragma clang loop unroll(disable)
    for (int step = 0; step < kSteps; step += kPairs) {
      VU8 codes[kPairs][kColumnVectors];
      QUERN_UNROLL
      for (int i = 0; i < kPairs; ++i) {
        QUERN_UNROLL
        for (int v = 0; v < kColumnVectors; ++v) codes[i][v] = codes_at(step + i, v);
      }
      ForTile<M>([&](int r, int v) {
        VI16 pairs = pair_dot(codes[0][v], quants_at(step, r));
        if constexpr (kPairs == 2) pairs = hn::Add(pairs, pair_dot(codes[1][v], quants_at(step + 1, r)));
        sum[r][v] = add(sum[r][v], pairs, v);
      });
    }
  } else {
    QUERN_UNROLL
    for (int first = 0; first < kSteps; first += kPairs) {
      VI16 pairs[M][kColumnVectors];
      ForTile<M>([&](int r, int v) { pairs[r][v] = hn::Zero(DI16()); });
#pragma clang loop unroll(disable)
      for (int step = first; step < first + kPairs; ++step) {
        VU8 codes[kColumnVectors];
        QUERN_UNROLL
        for (int v = 0; v < kColumnVectors; ++v) codes[v] = codes_at(step, v);
        ForTile<M>([&](int r, int v) { pairs[r][v] = hn::Add(pairs[r][v], pair_dot(codes[v], quants_at(step, r))); });
      }
      ForTile<M>([&](int r, int v) { sum[r][v] = add(first == 0 ? start(r, v) : sum[r][v], pairs[r][v], v); });
    }
  }
}

// Adds pairs as they are.
struct Unscaled {
  HWY_INLINE VI32 operator()(VI32 sum, VI16 pairs, int) const { return AddPairs(sum, pairs); }
};

constexpr int CeilLog2(int value) { return value <= 1 ? 0 : 1 + CeilLog2((value + 1) / 2); }

// What the sums of kGroups groups of a row start from: -offset * sum(quants), since a panel stores code + offset.
// Nothing for formats without an offset, or for signed pairs, which take the offset away from the codes.
template <class Format>
constexpr int kOffset = kSignedCodes<Format> ? 0 : Format::kOffset;
template <class Format, int M, int kGroups = 16>
struct Starts {
  alignas(64) int32_t at[M][kGroups];
  HWY_INLINE void Load(const uint8_t* sums, int64_t x_stride) {
    const hn::CappedTag<int32_t, kGroups> d;
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) {
      QUERN_UNROLL
      for (int i = 0; i < kGroups; i += static_cast<int>(hn::MaxLanes(d))) {
        const auto* words = reinterpret_cast<const int16_t*>(sums + r * x_stride) + i;
        const auto wide = hn::PromoteTo(d, hn::LoadU(hn::Rebind<int16_t, decltype(d)>(), words));
        hn::Store(hn::Neg(hn::ShiftLeft<CeilLog2(kOffset<Format>)>(wide)), d, at[r] + i);
      }
    }
  }
  HWY_INLINE VI32 Get(int r, int64_t group) const {
    return kOffset<Format> == 0 ? hn::Zero(DI32()) : hn::Set(DI32(), at[r][group]);
  }
};

// xd * sum(quants) of 16 blocks of 32 of a row: what is multiplied by a number that is added to all of a block.
template <int M>
struct ScaledSums {
  alignas(64) float at[M][16];
  // Rows hold whole lines of both: what lies behind the last block is read and not used.
  HWY_INLINE void Load(const uint8_t* sums, const uint8_t* scales, int64_t x_stride) {
    const DF32 d;
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) {
      QUERN_UNROLL
      for (int i = 0; i < 16; i += kLanes) {
        const auto* words = reinterpret_cast<const int16_t*>(sums + r * x_stride) + i;
        const VI32 wide = hn::PromoteTo(DI32(), hn::LoadU(hn::Rebind<int16_t, DI32>(), words));
        const VF32 xd = hn::LoadU(d, reinterpret_cast<const float*>(scales + r * x_stride) + i);
        hn::Store(hn::Mul(hn::ConvertTo(d, wide), xd), d, at[r] + i);
      }
    }
  }
};

}  // namespace
}  // namespace quern::simd
