// qk_mma_{q8_0,q4_0,q5_0,q4_1,q5_1,iq4_nl,mxfp4}: c[m, n] += x (q8_0 @planar) * w (@panel16)^T for a panel of up to 16
// weight rows and any m.
//
//   for each block of 32:  c += d * xd * (codes . quants - offset * sum(quants)) + added * xd * sum(quants)
//
// The integer sums are exact.
#include "simd/tiles/quant_mma.h"

namespace quern::simd {
namespace {

template <class Format, int M>
HWY_NOINLINE void Tile(float* c, int64_t c_ld, const uint8_t* x, int64_t x_stride, const uint8_t* panel, int64_t n,
                       int64_t k) {
  const DF32 df;
  const PlanarAt<32> planar(k);
  const auto* scales = reinterpret_cast<const float*>(panel + PanelAt<Format>(k).scales);
  [[maybe_unused]] const auto* added = reinterpret_cast<const float*>(panel + PanelAt<Format>(k).supers);
  RowPointers<M> rows(x, x_stride), row_scales(x + planar.scales, x_stride);
  VF32 acc[M][kColumnVectors];
  QUERN_UNROLL
  for (int r = 0; r < M; ++r) {
    QUERN_UNROLL
    for (int v = 0; v < kColumnVectors; ++v) acc[r][v] = hn::Zero(df);
  }
  Starts<Format, M> starts;
  [[maybe_unused]] ScaledSums<M> sums;
  const int64_t blocks = k / 32;
  for (int64_t first = 0; first < blocks; first += 16) {
    if constexpr (kOffset<Format> != 0) starts.Load(x + planar.sums + first * 2, x_stride);
    if constexpr (Format::kAdded) sums.Load(x + planar.sums + first * 2, x + planar.scales + first * 4, x_stride);
    const int64_t count = blocks - first < 16 ? blocks - first : 16;
#pragma clang loop unroll(disable)
    for (int64_t b = 0; b < count; ++b, panel += 8 * 64, scales += 16) {
      VI32 products[M][kColumnVectors];
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) {
        QUERN_UNROLL
        for (int v = 0; v < kColumnVectors; ++v) products[r][v] = starts.Get(r, b);
      }
      AddGroup<Format, M>(panel, rows, products);
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
          for (int r = 0; r < M; ++r) acc[r][v] = hn::MulAdd(each, hn::Set(df, sums.at[r][b]), acc[r][v]);
        }
      }
      if constexpr (Format::kAdded) added += 16;
      rows.Advance(32);
      row_scales.Advance(4);
    }
  }
  AddTile<M>(c, c_ld, acc, n);
}

template <class Format>
HWY_INLINE void Mma(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t m, int64_t n,
                    int64_t k) {
  ForRowBlocks(m, [&]<int M>(int64_t row) {
    Tile<Format, M>(c + row * c_ld, c_ld, static_cast<const uint8_t*>(x) + row * x_stride, x_stride,
                    static_cast<const uint8_t*>(panel), n, k);
  });
}

}  // namespace
}  // namespace quern::simd

QUERN_TILE(qk_mma_q8_0)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                        int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::Q8_0>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_q4_0)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                        int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::Q4_0>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_q5_0)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                        int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::Q5_0>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_q4_1)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                        int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::Q4_1>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_q5_1)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                        int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::Q5_1>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_iq4_nl)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t,
                          int64_t m, int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::IQ4_NL>(c, c_ld, x, x_stride, panel, m, n, k);
}

QUERN_TILE(qk_mma_mxfp4)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                         int64_t n, int64_t k) {
  quern::simd::Mma<quern::simd::MXFP4>(c, c_ld, x, x_stride, panel, m, n, k);
}
