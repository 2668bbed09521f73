// qk_dot_F_x for every F of quant_layout.h: y[r, j] += dot(row j of w, row r of x) with x in f32: weights are decoded,
// nothing is quantised. For --exact runs; slower than the integer dots, as every code becomes a float.
#include "simd/tiles/quant_decode.h"
#include "simd/tiles/quant_dot.h"

namespace quern::simd {
namespace {

template <class Format, int M>
HWY_NOINLINE void ExactRows(float* y, int64_t y_ld, const uint8_t* w, int64_t w_stride, const uint8_t* x,
                            int64_t x_stride, int64_t n, int64_t k, int64_t ahead) {
  constexpr int kBlocksALine = Format::kBytes < 64 ? 64 / Format::kBytes : 1;
  const DF32 d;
  for (int64_t j = 0; j < n; ++j) {
    const uint8_t* block = w + j * w_stride;
    VF32 acc[M][2];  // two, to hide the latency of the adds
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) acc[r][0] = acc[r][1] = hn::Zero(d);
    const uint8_t* row = x;
    for (int64_t b = 0; b < k / Format::kElements; ++b, block += Format::kBytes) {
      if (b % kBlocksALine == 0) PrefetchAhead<Format::kBytes * kBlocksALine>(block, ahead);
      const BlockHeader<Format> header(block);
      QUERN_UNROLL
      for (int s = 0; s < Format::kElements / 32; ++s, row += 128) {
        VF32 values[kVectors32];
        Decode32(header, block, s, values);
        QUERN_UNROLL
        for (int v = 0; v < kVectors32; ++v) {
          QUERN_UNROLL
          for (int r = 0; r < M; ++r) {
            const VF32 activations = hn::LoadU(d, reinterpret_cast<const float*>(row + r * x_stride) + v * kLanes);
            acc[r][v % 2] = hn::MulAdd(values[v], activations, acc[r][v % 2]);
          }
        }
      }
    }
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) y[r * y_ld + j] += SumLanes(hn::Add(acc[r][0], acc[r][1]));
  }
}

template <class Format>
HWY_INLINE void ExactDot(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride,
                         int64_t m, int64_t n, int64_t k, int64_t ahead) {
  const auto* rows = static_cast<const uint8_t*>(x);
  while (m > 0) {
    const int64_t take = m < 4 ? m : 4;
    DispatchRows<4>(take, [&]<int M>() {
      ExactRows<Format, M>(y, y_ld, static_cast<const uint8_t*>(w), w_stride, rows, x_stride, n, k, ahead);
    });
    m -= take;
    y += take * y_ld;
    rows += take * x_stride;
  }
}

}  // namespace
}  // namespace quern::simd

// A row is a tile of a format.
#define QUERN_EXACT_DOT(Format)                                                                                    \
  (float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride, int64_t m, int64_t n, \
   int64_t k, int64_t ahead) {                                                                                     \
    quern::simd::ExactDot<quern::simd::Format>(y, y_ld, w, w_stride, x, x_stride, m, n, k, ahead);                 \
  }

QUERN_TILE(qk_dot_q8_0_x) QUERN_EXACT_DOT(Q8_0);
QUERN_TILE(qk_dot_q4_0_x) QUERN_EXACT_DOT(Q4_0);
QUERN_TILE(qk_dot_q5_0_x) QUERN_EXACT_DOT(Q5_0);
QUERN_TILE(qk_dot_q4_1_x) QUERN_EXACT_DOT(Q4_1);
QUERN_TILE(qk_dot_q5_1_x) QUERN_EXACT_DOT(Q5_1);
QUERN_TILE(qk_dot_iq4_nl_x) QUERN_EXACT_DOT(IQ4_NL);
QUERN_TILE(qk_dot_mxfp4_x) QUERN_EXACT_DOT(MXFP4);
QUERN_TILE(qk_dot_q2_K_x) QUERN_EXACT_DOT(Q2_K);
QUERN_TILE(qk_dot_q3_K_x) QUERN_EXACT_DOT(Q3_K);
QUERN_TILE(qk_dot_q4_K_x) QUERN_EXACT_DOT(Q4_K);
QUERN_TILE(qk_dot_q5_K_x) QUERN_EXACT_DOT(Q5_K);
QUERN_TILE(qk_dot_q6_K_x) QUERN_EXACT_DOT(Q6_K);
QUERN_TILE(qk_dot_iq4_xs_x) QUERN_EXACT_DOT(IQ4_XS);
QUERN_TILE(qk_dot_q8_K_x) QUERN_EXACT_DOT(Q8_K);
QUERN_TILE(qk_dot_tq1_0_x) QUERN_EXACT_DOT(TQ1_0);
QUERN_TILE(qk_dot_tq2_0_x) QUERN_EXACT_DOT(TQ2_0);
QUERN_TILE(qk_dot_iq2_xxs_x) QUERN_EXACT_DOT(IQ2_XXS);
QUERN_TILE(qk_dot_iq2_xs_x) QUERN_EXACT_DOT(IQ2_XS);
QUERN_TILE(qk_dot_iq2_s_x) QUERN_EXACT_DOT(IQ2_S);
QUERN_TILE(qk_dot_iq3_xxs_x) QUERN_EXACT_DOT(IQ3_XXS);
QUERN_TILE(qk_dot_iq3_s_x) QUERN_EXACT_DOT(IQ3_S);
QUERN_TILE(qk_dot_iq1_s_x) QUERN_EXACT_DOT(IQ1_S);
QUERN_TILE(qk_dot_iq1_m_x) QUERN_EXACT_DOT(IQ1_M);
