// qk_mma_{q8_0,q4_0,q5_0,q4_1,q5_1,iq4_nl,mxfp4}: c[m, n] += x (q8_0 @planar) * w (@panel16)^T for a panel of up to 16
// weight rows and any m.
//
//   for each block of 32:  c += d * xd * (codes . quants - offset * sum(quants)) + added * xd * sum(quants)
//
// The integer sums are exact.
#include "simd/tiles/amx_q32.h"
#include "simd/tiles/quant_few.h"
#include "simd/tiles/quant_mma.h"

extern "C" quern::simd::PackTile QUERN_NAME(qk_pack_q8_0_panel16), QUERN_NAME(qk_pack_q4_0_panel16),
    QUERN_NAME(qk_pack_q5_0_panel16), QUERN_NAME(qk_pack_q4_1_panel16), QUERN_NAME(qk_pack_q5_1_panel16),
    QUERN_NAME(qk_pack_iq4_nl_panel16), QUERN_NAME(qk_pack_mxfp4_panel16);
extern "C" quern::simd::DotTile QUERN_NAME(qk_dot_q8_0), QUERN_NAME(qk_dot_q4_0), QUERN_NAME(qk_dot_q5_0),
    QUERN_NAME(qk_dot_q4_1), QUERN_NAME(qk_dot_q5_1), QUERN_NAME(qk_dot_iq4_nl), QUERN_NAME(qk_dot_mxfp4);

namespace quern::simd {
namespace {

// 16 blocks at a time, whose sums are loaded together: a part of a panel begins with such a group, or is within one.
template <class Format, int M, class Ahead>
HWY_NOINLINE void Tile(const DotCall& call, int64_t row, const PanelPart& part) {
  const uint8_t *const x = call.x + row * call.x_stride, *panel = part.codes;
  const int64_t x_stride = call.x_stride, first = part.first, k = part.k;
  const PlanarAt<32> planar(call.k);
  const DF32 df;
  const auto* scales = reinterpret_cast<const float*>(panel + PanelAt<Format>(k).scales);
  [[maybe_unused]] const auto* added = reinterpret_cast<const float*>(panel + PanelAt<Format>(k).supers);
  const int64_t behind = first / 32 % 16, start = first / 32 - behind;
  RowPointers<M> rows(x + first, x_stride), row_scales(x + planar.scales + first / 32 * 4, x_stride);
  VF32 acc[M][kColumnVectors];
  ForTile<M>([&](int r, int v) { acc[r][v] = hn::Zero(df); });
  Starts<Format, M> starts;
  [[maybe_unused]] ScaledSums<M> sums;
  const int64_t blocks = k / 32, rows_ahead = (16 + blocks - 1) / blocks;
  [[maybe_unused]] Ahead ahead(part.ahead, call.w_stride);
  for (int64_t done = 0; done < blocks; done += 16) {
    const uint8_t* const block_sums = x + planar.sums + (start + done) * 2;
    if constexpr (kOffset<Format> != 0) starts.Load(block_sums, x_stride);
    if constexpr (Format::kAdded) sums.Load(block_sums, x + planar.scales + (start + done) * 4, x_stride);
    const int64_t count = blocks - done < 16 ? blocks - done : 16;
#pragma clang loop unroll(disable)
    for (int64_t b = 0; b < count; ++b, panel += 8 * 64, scales += 16) {
      ahead.template Fetch<Format>(rows_ahead);
      VI32 products[M][kColumnVectors];
      SumGroup<Format, M>(panel, rows, [&](int r, int) { return starts.Get(r, behind + b); }, Unscaled(), products);
      QUERN_UNROLL
      for (int v = 0; v < kColumnVectors; ++v) {
        const VF32 d = hn::LoadU(df, scales + v * kLanes);
        QUERN_UNROLL
        for (int r = 0; r < M; ++r) {
          const VF32 scale = hn::Mul(d, hn::Set(df, LoadScalar<float>(row_scales.At(r))));
          acc[r][v] = hn::MulAdd(hn::ConvertTo(df, products[r][v]), scale, acc[r][v]);
        }
        if constexpr (Format::kAdded) {
          const VF32 each = hn::LoadU(df, added + v * kLanes);
          QUERN_UNROLL
          for (int r = 0; r < M; ++r) acc[r][v] = hn::MulAdd(each, hn::Set(df, sums.at[r][behind + b]), acc[r][v]);
        }
      }
      if constexpr (Format::kAdded) added += 16;
      rows.Advance(32);
      row_scales.Advance(4);
    }
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
  AmxMma32<Format>(c, c_ld, rows, x_stride, codes, m, n, k);
#else
  MultiplyPanel<Format>({c, c_ld, nullptr, 0, rows, x_stride, n, k, 0}, m, {codes, 0, n, 0, k});
#endif
}

}  // namespace
}  // namespace quern::simd

QUERN_TILE(qk_mma_q8_0) QUERN_MMA(Q8_0);
QUERN_TILE(qk_mma_q4_0) QUERN_MMA(Q4_0);
QUERN_TILE(qk_mma_q5_0) QUERN_MMA(Q5_0);
QUERN_TILE(qk_mma_q4_1) QUERN_MMA(Q4_1);
QUERN_TILE(qk_mma_q5_1) QUERN_MMA(Q5_1);
QUERN_TILE(qk_mma_iq4_nl) QUERN_MMA(IQ4_NL);
QUERN_TILE(qk_mma_mxfp4) QUERN_MMA(MXFP4);

QUERN_TILE(qk_few_q8_0) QUERN_FEW(Q8_0, q8_0);
QUERN_TILE(qk_few_q4_0) QUERN_FEW(Q4_0, q4_0);
QUERN_TILE(qk_few_q5_0) QUERN_FEW(Q5_0, q5_0);
QUERN_TILE(qk_few_q4_1) QUERN_FEW(Q4_1, q4_1);
QUERN_TILE(qk_few_q5_1) QUERN_FEW(Q5_1, q5_1);
QUERN_TILE(qk_few_iq4_nl) QUERN_FEW(IQ4_NL, iq4_nl);
QUERN_TILE(qk_few_mxfp4) QUERN_FEW(MXFP4, mxfp4);
