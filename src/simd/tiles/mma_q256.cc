// qk_mma_F of the formats of blocks of 256: c[m, n] += x (q8_K @planar) * w (@panel16)^T for a panel of up to 16 weight
// rows and any m.
//
//   c += xd * (sum_g scale_g * ((codes_g - offset) . quants_g) - dmin * sum_g min_g * sum_g(quants))
//
// for each block of 256; g: its groups; scale_g is d times the one of the block, from the panel. minimums: of q2_K,
// q4_K and q5_K; offset: of the others. The integer sums are exact. Where scales are words (kWordScales) they are those
// of a block, of which d is a factor:
//
//   c += xd * d * (sum_g scale_g * codes_g . quants_g - offset * sum_g scale_g * sum_g(quants))
//
// and where a block has one scale (q8_K, tq1_0, tq2_0) this is its sum with scales of one, whatever the level.
#include "simd/tiles/amx_q256.h"
#include "simd/tiles/quant_few.h"
#include "simd/tiles/quant_mma.h"

extern "C" quern::simd::PackTile QUERN_NAME(qk_pack_q2_K_panel16), QUERN_NAME(qk_pack_q3_K_panel16),
    QUERN_NAME(qk_pack_q4_K_panel16), QUERN_NAME(qk_pack_q5_K_panel16), QUERN_NAME(qk_pack_q6_K_panel16),
    QUERN_NAME(qk_pack_q8_K_panel16), QUERN_NAME(qk_pack_tq1_0_panel16), QUERN_NAME(qk_pack_tq2_0_panel16),
    QUERN_NAME(qk_pack_iq4_xs_panel16), QUERN_NAME(qk_pack_iq2_xxs_panel16), QUERN_NAME(qk_pack_iq2_xs_panel16),
    QUERN_NAME(qk_pack_iq2_s_panel16), QUERN_NAME(qk_pack_iq3_xxs_panel16), QUERN_NAME(qk_pack_iq3_s_panel16),
    QUERN_NAME(qk_pack_iq1_s_panel16), QUERN_NAME(qk_pack_iq1_m_panel16);
extern "C" quern::simd::DotTile QUERN_NAME(qk_dot_q2_K), QUERN_NAME(qk_dot_q3_K), QUERN_NAME(qk_dot_q4_K),
    QUERN_NAME(qk_dot_q5_K), QUERN_NAME(qk_dot_q6_K), QUERN_NAME(qk_dot_q8_K), QUERN_NAME(qk_dot_tq1_0),
    QUERN_NAME(qk_dot_tq2_0), QUERN_NAME(qk_dot_iq4_xs), QUERN_NAME(qk_dot_iq2_xxs), QUERN_NAME(qk_dot_iq2_xs),
    QUERN_NAME(qk_dot_iq2_s), QUERN_NAME(qk_dot_iq3_xxs), QUERN_NAME(qk_dot_iq3_s), QUERN_NAME(qk_dot_iq1_s),
    QUERN_NAME(qk_dot_iq1_m);

namespace quern::simd {
namespace {

template <class Format>
constexpr bool kOneScale = Format::kGroup == 256;
template <class Format>
constexpr int kGroups = 256 / kGroupRun<Format>;

// The block of a panel that is next, by what it has.
template <class Format>
struct PanelBlock {
  using At = KPanelAt<Format, kWordScales>;
  const uint8_t *codes, *scales;
  const int16_t* mins;
  const float* supers;
  HWY_INLINE PanelBlock(const uint8_t* panel, int64_t k) : codes(panel) {
    const At at(k);
    scales = panel + at.scales;
    mins = reinterpret_cast<const int16_t*>(panel + at.mins);
    supers = reinterpret_cast<const float*>(panel + at.supers);
  }
};

// The sums of the quants of the groups of a block, of several rows.
struct QuantSums {
  const uint8_t* at;
  int64_t stride;
  // Of all groups.
  HWY_INLINE VI32 Whole(int r) const {
    const hn::FixedTag<int16_t, 8> words;
    const auto pairs = MulPairs(hn::LoadU(words, reinterpret_cast<const int16_t*>(at + r * stride)), hn::Set(words, 1));
    return hn::Set(DI32(), hn::GetLane(hn::SumOfLanes(hn::DFromV<decltype(pairs)>(), pairs)));
  }
  // Each group's times its word of `by`, i16 [groups / 2][16][2].
  template <int kCount>
  HWY_INLINE VI32 Times(const int16_t* by, int r, int v) const {
    VI32 sum = hn::Zero(DI32());
    QUERN_UNROLL
    for (int pair = 0; pair < kCount / 2; ++pair) {
      const VI16 two = hn::LoadU(DI16(), by + pair * 32 + v * kLanes * 2);
      sum = WordDot(sum, two, hn::BitCast(DI16(), Broadcast4(at + r * stride + pair * 4)));
    }
    return sum;
  }
};

// sum = the products of a block, its groups by scales that are words or by none, in integers.
template <class Format, int M, class Ahead>
HWY_INLINE void SumBlock(PanelBlock<Format>& block, RowPointers<M>& rows, const QuantSums& sums, Ahead& ahead,
                         VF32 (*sum)[kColumnVectors]) {
  using At = typename PanelBlock<Format>::At;
  VI32 total[M][kColumnVectors];
  ForTile<M>([&](int r, int v) { total[r][v] = hn::Zero(DI32()); });
#pragma clang loop unroll(disable)
  for (int g = 0; g < kGroups<Format>; ++g, block.codes += kGroupRun<Format> * 16) {
    ahead.template Fetch<Format>(16 / kGroups<Format>);
    const auto so_far = [&](int r, int v) { return total[r][v]; };
    if constexpr (kOneScale<Format>) {
      SumGroup<Format, M>(block.codes, rows, so_far, Unscaled(), total);
    } else {
      const auto scaled = [&](VI32 to, VI16 pairs, int v) {
        return WordDot(to, pairs, hn::LoadU(DI16(), reinterpret_cast<const int16_t*>(block.scales + v * kBytes)));
      };
      SumGroup<Format, M>(block.codes, rows, so_far, scaled, total);
      block.scales += 64;
    }
    rows.Advance(kGroupRun<Format>);
  }
  const auto* const d = kOneScale<Format> ? reinterpret_cast<const float*>(block.scales) : block.supers;
  ForTile<M>([&](int r, int v) {
    VI32 whole = total[r][v];
    if constexpr (kOneScale<Format> && kOffset<Format> != 0) {
      whole = hn::Sub(whole, hn::ShiftLeft<CeilLog2(kOffset<Format>)>(sums.Whole(r)));
    } else if constexpr (At::kScalesAgain) {
      const VI32 scaled = sums.Times<kGroups<Format>>(block.mins, r, v);
      whole = hn::Sub(whole, hn::ShiftLeft<CeilLog2(Format::kOffset)>(scaled));
    }
    sum[r][v] = hn::Mul(hn::ConvertTo(DF32(), whole), hn::LoadU(DF32(), d + v * kLanes));
  });
  if constexpr (kOneScale<Format>) {
    block.scales += 64;
  } else {
    block.supers += 16;
    if constexpr (At::kScalesAgain) block.mins += kGroups<Format> * 16;
  }
}

// The same where each group has a scale of f32.
template <class Format, int M, class Ahead>
HWY_INLINE void SumByGroup(PanelBlock<Format>& block, RowPointers<M>& rows, const QuantSums& sums, Ahead& ahead,
                           VF32 (*sum)[kColumnVectors]) {
  const DF32 df;
  Starts<Format, M, kGroups<Format>> starts;
  if constexpr (kOffset<Format> != 0) starts.Load(sums.at, sums.stride);
  ForTile<M>([&](int r, int v) { sum[r][v] = hn::Zero(df); });
#pragma clang loop unroll(disable)
  for (int g = 0; g < kGroups<Format>; ++g, block.codes += kGroupRun<Format> * 16, block.scales += 64) {
    ahead.template Fetch<Format>(16 / kGroups<Format>);
    VI32 products[M][kColumnVectors];
    SumGroup<Format, M>(block.codes, rows, [&](int r, int) { return starts.Get(r, g); }, Unscaled(), products);
    rows.Advance(kGroupRun<Format>);
    QUERN_UNROLL
    for (int v = 0; v < kColumnVectors; ++v) {
      const VF32 scale = hn::LoadU(df, reinterpret_cast<const float*>(block.scales) + v * kLanes);
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) sum[r][v] = hn::MulAdd(hn::ConvertTo(df, products[r][v]), scale, sum[r][v]);
    }
  }
}

// Takes minimums away.
template <class Format, int M>
HWY_INLINE void TakeMinimums(PanelBlock<Format>& block, const QuantSums& sums, VF32 (*sum)[kColumnVectors]) {
  const DF32 df;
  ForTile<M>([&](int r, int v) {
    const VF32 dmin = hn::LoadU(df, block.supers + v * kLanes);
    sum[r][v] = hn::NegMulAdd(hn::ConvertTo(df, sums.Times<kGroups<Format>>(block.mins, r, v)), dmin, sum[r][v]);
  });
  block.mins += kGroups<Format> * 16;
  block.supers += 16;
}

template <class Format, int M, class Ahead>
HWY_NOINLINE void Tile(const DotCall& call, int64_t row, const PanelPart& part) {
  const uint8_t* const x = call.x + row * call.x_stride;
  const PlanarAt<256> planar(call.k);
  PanelBlock<Format> block(part.codes, part.k);
  RowPointers<M> rows(x + part.first, call.x_stride);
  VF32 acc[M][kColumnVectors];
  ForTile<M>([&](int r, int v) { acc[r][v] = hn::Zero(DF32()); });
  QuantSums sums{x + (kGroups<Format> == 16 ? planar.sums : planar.wide_sums) + part.first / kGroupRun<Format> * 2,
                 call.x_stride};
  [[maybe_unused]] Ahead ahead(part.ahead, call.w_stride);
  const uint8_t* const block_scales = x + planar.scales + part.first / 256 * 4;
  for (int64_t b = 0; b < part.k / 256; ++b, sums.at += kGroups<Format> * 2) {
    VF32 sum[M][kColumnVectors];
    if constexpr (PanelBlock<Format>::At::kWords || kOneScale<Format>) {
      SumBlock<Format, M>(block, rows, sums, ahead, sum);
    } else {
      SumByGroup<Format, M>(block, rows, sums, ahead, sum);
    }
    if constexpr (Format::kHasMins) TakeMinimums<Format, M>(block, sums, sum);
    ForTile<M>([&](int r, int v) {
      const VF32 xd = hn::Set(DF32(), LoadScalar<float>(block_scales + r * call.x_stride + b * 4));
      acc[r][v] = hn::MulAdd(sum[r][v], xd, acc[r][v]);
    });
  }
  AddTile<M>(call.y + row * call.y_ld + part.j, call.y_ld, acc, part.n);
}

template <class Format>
HWY_NOINLINE void MultiplyPanel(const DotCall& call, int64_t m, const PanelPart& part) {
  ForPanelRows(m, part, [&]<int M, class Ahead>(int64_t row) { Tile<Format, M, Ahead>(call, row, part); });
}

template <class Format>
HWY_INLINE void Mma(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t m, int64_t n,
                    int64_t k) {
  const auto *rows = static_cast<const uint8_t*>(x), *codes = static_cast<const uint8_t*>(panel);
#if defined(__AMX_INT8__)
  AmxMma<Format>(c, c_ld, rows, x_stride, codes, m, n, k);
#else
  MultiplyPanel<Format>({c, c_ld, nullptr, 0, rows, x_stride, n, k, 0}, m, {codes, 0, n, 0, k});
#endif
}

}  // namespace
}  // namespace quern::simd

QUERN_TILE(qk_mma_q2_K) QUERN_MMA(Q2_K);
QUERN_TILE(qk_mma_q3_K) QUERN_MMA(Q3_K);
QUERN_TILE(qk_mma_q4_K) QUERN_MMA(Q4_K);
QUERN_TILE(qk_mma_q5_K) QUERN_MMA(Q5_K);
QUERN_TILE(qk_mma_q6_K) QUERN_MMA(Q6_K);
QUERN_TILE(qk_mma_iq4_xs) QUERN_MMA(IQ4_XS);
QUERN_TILE(qk_mma_q8_K) QUERN_MMA(Q8_K);
QUERN_TILE(qk_mma_tq1_0) QUERN_MMA(TQ1_0);
QUERN_TILE(qk_mma_tq2_0) QUERN_MMA(TQ2_0);
QUERN_TILE(qk_mma_iq2_xxs) QUERN_MMA(IQ2_XXS);
QUERN_TILE(qk_mma_iq2_xs) QUERN_MMA(IQ2_XS);
QUERN_TILE(qk_mma_iq2_s) QUERN_MMA(IQ2_S);
QUERN_TILE(qk_mma_iq3_xxs) QUERN_MMA(IQ3_XXS);
QUERN_TILE(qk_mma_iq3_s) QUERN_MMA(IQ3_S);
QUERN_TILE(qk_mma_iq1_s) QUERN_MMA(IQ1_S);
QUERN_TILE(qk_mma_iq1_m) QUERN_MMA(IQ1_M);

QUERN_TILE(qk_few_q2_K) QUERN_FEW(Q2_K, q2_K);
QUERN_TILE(qk_few_q3_K) QUERN_FEW(Q3_K, q3_K);
QUERN_TILE(qk_few_q4_K) QUERN_FEW(Q4_K, q4_K);
QUERN_TILE(qk_few_q5_K) QUERN_FEW(Q5_K, q5_K);
QUERN_TILE(qk_few_q6_K) QUERN_FEW(Q6_K, q6_K);
QUERN_TILE(qk_few_iq4_xs) QUERN_FEW(IQ4_XS, iq4_xs);
QUERN_TILE(qk_few_q8_K) QUERN_FEW(Q8_K, q8_K);
QUERN_TILE(qk_few_tq1_0) QUERN_FEW(TQ1_0, tq1_0);
QUERN_TILE(qk_few_tq2_0) QUERN_FEW(TQ2_0, tq2_0);
QUERN_TILE(qk_few_iq2_xxs) QUERN_FEW(IQ2_XXS, iq2_xxs);
QUERN_TILE(qk_few_iq2_xs) QUERN_FEW(IQ2_XS, iq2_xs);
QUERN_TILE(qk_few_iq2_s) QUERN_FEW(IQ2_S, iq2_s);
QUERN_TILE(qk_few_iq3_xxs) QUERN_FEW(IQ3_XXS, iq3_xxs);
QUERN_TILE(qk_few_iq3_s) QUERN_FEW(IQ3_S, iq3_s);
QUERN_TILE(qk_few_iq1_s) QUERN_FEW(IQ1_S, iq1_s);
QUERN_TILE(qk_few_iq1_m) QUERN_FEW(IQ1_M, iq1_m);
