// qk_mma_F of the formats of blocks of 256: c[m, n] += x (q8_K @planar) * w (@panel16)^T for a panel of up to 16 weight
// rows and any m.
//
//   c += xd * (sum_g scale_g * ((codes_g - offset) . quants_g) - dmin * sum_g min_g * sum_g(quants))
//
// for each block of 256; g: its groups; scale_g is d times the one of the block, from the panel. minimums: of q2_K,
// q4_K and q5_K; offset: of the others. The integer sums are exact.
#include "simd/tiles/quant_amx.h"
#include "simd/tiles/quant_mma.h"

namespace quern::simd {
namespace {

#if !defined(__AMX_INT8__)
template <class Format, int M>
HWY_NOINLINE void Tile(float* c, int64_t c_ld, const uint8_t* x, int64_t x_stride, const uint8_t* panel, int64_t n,
                       int64_t k) {
  const DF32 df;
  const PlanarAt<256> planar(k);
  const PanelAt<Format> at(k);
  const auto* scales = reinterpret_cast<const float*>(panel + at.scales);
  [[maybe_unused]] const auto* mins = reinterpret_cast<const int16_t*>(panel + at.mins);
  [[maybe_unused]] const auto* supers = reinterpret_cast<const float*>(panel + at.supers);
  RowPointers<M> rows(x, x_stride);
  VF32 acc[M][kColumnVectors];
  QUERN_UNROLL
  for (int r = 0; r < M; ++r) {
    QUERN_UNROLL
    for (int v = 0; v < kColumnVectors; ++v) acc[r][v] = hn::Zero(df);
  }
  constexpr int kGroups = 256 / Format::kGroup;
  // Sums of the quants of groups, and bytes of them a block.
  const uint8_t* const group_sums = x + (kGroups == 16 ? planar.sums : planar.wide_sums);
  Starts<Format, M, kGroups> starts;
  for (int64_t b = 0; b < k / 256; ++b) {
    if constexpr (kOffset<Format> != 0) starts.Load(group_sums + b * kGroups * 2, x_stride);
    VF32 sum[M][kColumnVectors];
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) {
      QUERN_UNROLL
      for (int v = 0; v < kColumnVectors; ++v) sum[r][v] = hn::Zero(df);
    }
#pragma clang loop unroll(disable)
    for (int g = 0; g < kGroups; ++g, panel += Format::kGroup * 16, scales += 16) {
      VI32 products[M][kColumnVectors];
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) {
        QUERN_UNROLL
        for (int v = 0; v < kColumnVectors; ++v) products[r][v] = starts.Get(r, g);
      }
      AddGroup<Format, M>(panel, rows, products);
      rows.Advance(Format::kGroup);
      QUERN_UNROLL
      for (int v = 0; v < kColumnVectors; ++v) {
        const VF32 scale = hn::LoadU(df, scales + v * kLanes);
        QUERN_UNROLL
        for (int r = 0; r < M; ++r) sum[r][v] = hn::MulAdd(hn::ConvertTo(df, products[r][v]), scale, sum[r][v]);
      }
    }
    if constexpr (Format::kHasMins) {
      const uint8_t* block_sums = group_sums + b * kGroups * 2;
      QUERN_UNROLL
      for (int v = 0; v < kColumnVectors; ++v) {
        const VF32 dmin = hn::LoadU(df, supers + v * kLanes);
        QUERN_UNROLL
        for (int r = 0; r < M; ++r) {
          VI32 sum_min = hn::Zero(DI32());
          QUERN_UNROLL
          for (int pair = 0; pair < kGroups / 2; ++pair) {
            const VI16 two_mins = hn::LoadU(DI16(), mins + pair * 32 + v * kLanes * 2);
            const auto two_sums = hn::BitCast(DI16(), Broadcast4(block_sums + r * x_stride + pair * 4));
            sum_min = WordDot(sum_min, two_mins, two_sums);
          }
          sum[r][v] = hn::NegMulAdd(hn::ConvertTo(df, sum_min), dmin, sum[r][v]);
        }
      }
      mins += kGroups * 16;
      supers += 16;
    }
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) {
      const VF32 xd = hn::Set(df, LoadScalar<float>(x + r * x_stride + planar.scales + b * 4));
      QUERN_UNROLL
      for (int v = 0; v < kColumnVectors; ++v) acc[r][v] = hn::MulAdd(sum[r][v], xd, acc[r][v]);
    }
  }
  AddTile<M>(c, c_ld, acc, n);
}
#endif

template <class Format>
HWY_INLINE void Mma(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t m, int64_t n,
                    int64_t k) {
  const auto* rows = static_cast<const uint8_t*>(x);
#if defined(__AMX_INT8__)
  AmxMma<Format>(c, c_ld, rows, x_stride, static_cast<const uint8_t*>(panel), m, n, k);
#else
  ForRowBlocks(m, [&]<int M>(int64_t row) {
    Tile<Format, M>(c + row * c_ld, c_ld, rows + row * x_stride, x_stride, static_cast<const uint8_t*>(panel), n, k);
  });
#endif
}

}  // namespace
}  // namespace quern::simd

QUERN_TILE(qk_mma_q2_K)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                        int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::Q2_K>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_q3_K)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                        int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::Q3_K>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_q4_K)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                        int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::Q4_K>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_q5_K)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                        int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::Q5_K>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_q6_K)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                        int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::Q6_K>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_iq4_xs)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t,
                          int64_t m, int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::IQ4_XS>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_iq2_xxs)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t,
                           int64_t m, int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::IQ2_XXS>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_iq2_xs)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t,
                          int64_t m, int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::IQ2_XS>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_iq2_s)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                         int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::IQ2_S>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_iq3_xxs)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t,
                           int64_t m, int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::IQ3_XXS>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_iq3_s)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                         int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::IQ3_S>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_iq1_s)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                         int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::IQ1_S>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_iq1_m)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                         int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::IQ1_M>(c, c_ld, x, x_stride, panel, m, n, k);
}
