// qk_mma_q8_0, qk_mma_q4_0: c[m, n] += x (q8_0 @planar) * w (@panel16)^T for a panel of up to 16 weight rows and any m.
//
//   for each block of 32:  c += d * xd * (codes . quants - offset * sum(quants))
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
  RowPointers<M> rows(x, x_stride), row_scales(x + planar.scales, x_stride);
  VF32 acc[M][kColumnVectors];
  QUERN_UNROLL
  for (int r = 0; r < M; ++r) {
    QUERN_UNROLL
    for (int v = 0; v < kColumnVectors; ++v) acc[r][v] = hn::Zero(df);
  }
  Starts<Format, M> starts;
  const int64_t blocks = k / 32;
  for (int64_t first = 0; first < blocks; first += 16) {
    starts.Load(x + planar.sums + first * 2, x_stride);
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
      }
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
