// qk_dot_F_x for every F of quant_layout.h: y[r, j] += dot(row j of w, row r of x) with x in f32: weights are decoded,
// nothing is quantised. For --exact runs, and formats that have no other; slower than the integer dots, as every code
// becomes a float.
#include "simd/tiles/quant_decode.h"
#include "simd/tiles/quant_dot.h"

namespace quern::simd {
namespace {

// M rows of activations by kStreams rows of weights from row j on: the second reads activations that are in the first
// cache by then. A last row that is alone is read twice, and counts once.
template <class Format, int M, int kStreams>
HWY_NOINLINE void ExactRows(const DotCall& call, int64_t j) {
  constexpr int kTogether = Format::kElements == 32 && kBytes == 64 ? 2 : 1;  // blocks
  // Sums of one row by another, to hide the latency of the adds; as many for any M, so that a row has the same bits.
  constexpr int kSums = kStreams == 2 && kRegisters < 32 ? 1 : 2;
  const DF32 d;
  const int64_t ahead = AheadOf<kStreams>(call), rows = call.n - j < kStreams ? call.n - j : kStreams,
                stride = rows == kStreams ? call.w_stride : 0;
  VF32 sums[kStreams][M][kSums];
  QUERN_UNROLL
  for (int stream = 0; stream < kStreams; ++stream) {
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) {
      QUERN_UNROLL
      for (int i = 0; i < kSums; ++i) sums[stream][r][i] = hn::Zero(d);
    }
  }
  const uint8_t *block = call.w + j * call.w_stride, *row = call.x;
  const auto add = [&]<int kBlocks>() HWY_ATTR __attribute__((always_inline)) {
    QUERN_UNROLL
    for (int stream = 0; stream < kStreams; ++stream) {
      QUERN_UNROLL
      for (int s = 0; s < kBlocks * Format::kElements / 32; ++s) {
        const uint8_t* const own = block + stream * stride + s * 32 / Format::kElements * Format::kBytes;
        const BlockHeader<Format> header(own);
        VF32 values[kVectors32];
        Decode32(header, own, s % (Format::kElements / 32), values);
        QUERN_UNROLL
        for (int v = 0; v < kVectors32; ++v) {
          QUERN_UNROLL
          for (int r = 0; r < M; ++r) {
            const auto* const from = reinterpret_cast<const float*>(row + r * call.x_stride) + s * 32 + v * kLanes;
            VF32& sum = sums[stream][r][(s * kVectors32 + v) % kSums];
            sum = hn::MulAdd(values[v], hn::LoadU(d, from), sum);
          }
        }
      }
    }
    block += kBlocks * Format::kBytes;
    row += kBlocks * Format::kElements * 4;
  };
  const int64_t blocks = call.k / Format::kElements;
  for (int64_t b = 0; b + kTogether <= blocks; b += kTogether) {
    QUERN_UNROLL
    for (int stream = 0; stream < kStreams; ++stream)
      PrefetchAhead<Format::kBytes * kTogether>(block + stream * stride, ahead);
    add.template operator()<kTogether>();
  }
  if (blocks % kTogether != 0) add.template operator()<1>();
  QUERN_UNROLL
  for (int stream = 0; stream < kStreams; ++stream) {
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) {
      VF32 sum = sums[stream][r][0];
      QUERN_UNROLL
      for (int i = 1; i < kSums; ++i) sum = hn::Add(sum, sums[stream][r][i]);
      if (stream < rows) call.y[r * call.y_ld + j + stream] += SumLanes(sum);
    }
  }
}

template <class Format>
HWY_INLINE void ExactDot(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride,
                         int64_t m, int64_t n, int64_t k, int64_t ahead) {
  const DotCall call = {y, y_ld, static_cast<const uint8_t*>(w), w_stride, static_cast<const uint8_t*>(x), x_stride, n,
                        k, ahead};
  // Of blocks of 256, and by short vectors, there is too much code in a step for more.
  constexpr int kStreams = Format::kElements == 32 && kBytes >= 32 ? 2 : 1;
  ForDotRows<4>(call, m, [&]<int M>(const DotCall& part) {
    for (int64_t j = 0; j < n; j += kStreams) ExactRows<Format, M, kStreams>(part, j);
  });
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
QUERN_TILE(qk_dot_n4_0_x) QUERN_EXACT_DOT(N4_0);
QUERN_TILE(qk_dot_n4_1_x) QUERN_EXACT_DOT(N4_1);
QUERN_TILE(qk_dot_n8_0_x) QUERN_EXACT_DOT(N8_0);
QUERN_TILE(qk_dot_n8_1_x) QUERN_EXACT_DOT(N8_1);
