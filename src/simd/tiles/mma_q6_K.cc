// qk_mma_q6_K: c[m, n] += x (q8_K @planar) * w (q6_K @panel16)^T for a panel of up to 16 weight rows and any m.
//
//   for each block of 256:  c += xd * sum_g scale_g * (codes_g . quants_g - 32 * sum_g(quants)),  g: groups of 16
//
// scale_g is d times the eight-bit scale, from the panel. The integer sums are exact.
#include "simd/tiles/quant_amx.h"
#include "simd/tiles/quant_mma.h"

#if !defined(__AMX_INT8__)
namespace quern::simd {
namespace {

template <int M>
HWY_NOINLINE void Tile(float* c, int64_t c_ld, const uint8_t* x, int64_t x_stride, const uint8_t* panel, int64_t n,
                       int64_t k) {
  const DF32 df;
  const PlanarAt<256> planar(k);
  const auto* scales = reinterpret_cast<const float*>(panel + PanelAt<Q6_K>(k).scales);
  RowPointers<M> rows(x, x_stride);
  VF32 acc[M][kColumnVectors];
  QUERN_UNROLL
  for (int r = 0; r < M; ++r) {
    QUERN_UNROLL
    for (int v = 0; v < kColumnVectors; ++v) acc[r][v] = hn::Zero(df);
  }
  Starts<Q6_K, M> starts;
  for (int64_t b = 0; b < k / 256; ++b) {
    starts.Load(x + planar.sums + b * 32, x_stride);
    VF32 sum[M][kColumnVectors];
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) {
      QUERN_UNROLL
      for (int v = 0; v < kColumnVectors; ++v) sum[r][v] = hn::Zero(df);
    }
#pragma clang loop unroll(disable)
    for (int g = 0; g < 16; ++g, panel += 4 * 64, scales += 16) {
      VI32 products[M][kColumnVectors];
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) {
        QUERN_UNROLL
        for (int v = 0; v < kColumnVectors; ++v) products[r][v] = starts.Get(r, g);
      }
      AddGroup<Q6_K, M>(panel, rows, products);
      rows.Advance(16);
      QUERN_UNROLL
      for (int v = 0; v < kColumnVectors; ++v) {
        const VF32 scale = hn::LoadU(df, scales + v * kLanes);
        QUERN_UNROLL
        for (int r = 0; r < M; ++r) sum[r][v] = hn::MulAdd(hn::ConvertTo(df, products[r][v]), scale, sum[r][v]);
      }
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

}  // namespace
}  // namespace quern::simd
#endif

QUERN_TILE(qk_mma_q6_K)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                        int64_t n, int64_t k) {
  using namespace quern::simd;
#if defined(__AMX_INT8__)
  AmxMma<Q6_K>(c, c_ld, static_cast<const uint8_t*>(x), x_stride, static_cast<const uint8_t*>(panel), m, n, k);
#else
  ForRowBlocks(m, [&]<int M>(int64_t row) {
    Tile<M>(c + row * c_ld, c_ld, static_cast<const uint8_t*>(x) + row * x_stride, x_stride,
            static_cast<const uint8_t*>(panel), n, k);
  });
#endif
}
