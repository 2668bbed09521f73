// qk_mma_q4_K: c[m, n] += x (q8_K @planar) * w (q4_K @panel16)^T for a panel of up to 16 weight rows and any m.
//
//   for each block of 256:  c += xd * (sum_s scale_s * (codes_s . quants_s) - dmin * sum_s min_s * sum_s(quants))
//
// scale_s is d times the six-bit scale, from the panel. The integer sums are exact.
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
  const PanelAt<Q4_K> at(k);
  const auto* scales = reinterpret_cast<const float*>(panel + at.scales);
  const auto* mins = reinterpret_cast<const int16_t*>(panel + at.mins);
  const auto* supers = reinterpret_cast<const float*>(panel + at.supers);
  RowPointers<M> rows(x, x_stride);
  VF32 acc[M][kColumnVectors];
  QUERN_UNROLL
  for (int r = 0; r < M; ++r) {
    QUERN_UNROLL
    for (int v = 0; v < kColumnVectors; ++v) acc[r][v] = hn::Zero(df);
  }
  for (int64_t b = 0; b < k / 256; ++b) {
    VF32 sum[M][kColumnVectors];
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) {
      QUERN_UNROLL
      for (int v = 0; v < kColumnVectors; ++v) sum[r][v] = hn::Zero(df);
    }
#pragma clang loop unroll(disable)
    for (int s = 0; s < 8; ++s, panel += 8 * 64, scales += 16) {
      VI32 products[M][kColumnVectors];
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) {
        QUERN_UNROLL
        for (int v = 0; v < kColumnVectors; ++v) products[r][v] = hn::Zero(DI32());
      }
      AddGroup<Q4_K, M>(panel, rows, products);
      rows.Advance(32);
      QUERN_UNROLL
      for (int v = 0; v < kColumnVectors; ++v) {
        const VF32 scale = hn::LoadU(df, scales + v * kLanes);
        QUERN_UNROLL
        for (int r = 0; r < M; ++r) sum[r][v] = hn::MulAdd(hn::ConvertTo(df, products[r][v]), scale, sum[r][v]);
      }
    }
    const uint8_t* block_x = x + planar.wide_sums + b * 16;
    const uint8_t* block_d = x + planar.scales + b * 4;
    QUERN_UNROLL
    for (int v = 0; v < kColumnVectors; ++v) {
      const VF32 dmin = hn::LoadU(df, supers + v * kLanes);
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) {
        VI32 sum_min = hn::Zero(DI32());
        QUERN_UNROLL
        for (int pair = 0; pair < 4; ++pair) {
          const VI16 two_mins = hn::LoadU(DI16(), mins + pair * 32 + v * kLanes * 2);
          sum_min = WordDot(sum_min, two_mins, hn::BitCast(DI16(), Broadcast4(block_x + r * x_stride + pair * 4)));
        }
        const VF32 value = hn::NegMulAdd(hn::ConvertTo(df, sum_min), dmin, sum[r][v]);
        const float xd = LoadScalar<float>(block_d + r * x_stride);
        acc[r][v] = hn::MulAdd(value, hn::Set(df, xd), acc[r][v]);
      }
    }
    mins += 128;
    supers += 16;
  }
  AddTile<M>(c, c_ld, acc, n);
}

}  // namespace
}  // namespace quern::simd
#endif

QUERN_TILE(qk_mma_q4_K)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                        int64_t n, int64_t k) {
  using namespace quern::simd;
#if defined(__AMX_INT8__)
  AmxMma<Q4_K>(c, c_ld, static_cast<const uint8_t*>(x), x_stride, static_cast<const uint8_t*>(panel), m, n, k);
#else
  ForRowBlocks(m, [&]<int M>(int64_t row) {
    Tile<M>(c + row * c_ld, c_ld, static_cast<const uint8_t*>(x) + row * x_stride, x_stride,
            static_cast<const uint8_t*>(panel), n, k);
  });
#endif
}
