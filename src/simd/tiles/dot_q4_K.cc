// qk_dot_q4_K: y[r, j] += dot(row j of w, row r of x) for q4_K @blocks weights and q8_K @planar activations.
//
//   for each block of 256:  y += xd * (d * sum_s scale_s * (codes_s . quants_s) - dmin * sum_s min_s * sum_s(quants))
//
// The integer sums are exact. Each weight block is decoded once and used for all m rows, so m = 1 streams the weights once,
// in address order, with a prefetch `ahead` bytes in front: that, not arithmetic, is its speed.
#include "simd/tiles/quant_dot.h"

namespace quern::simd {
namespace {

constexpr WordIndices<16, 128> kScaleIndices;  // lane i of the pair products of a block: sub-block i / 16

// The eight minimums and the eight sums of a block are one vector of words.
using DM16 = hn::FixedTag<int16_t, 8>;
using DMF = hn::FixedTag<float, 4>;

template <int M>
HWY_NOINLINE void DotRows(const DotCall& call) {
  const DU8 du8;
  const DI8 di8;
  const DI16 di16;
  const DI32 di32;
  const DF32 df;
  const DM16 dm16;
  const DMF dmf;
  const PlanarAt<256> at(call.k);
  const int64_t blocks = call.k / 256;
  for (int64_t j = 0; j < call.n; ++j) {
    const uint8_t* block = call.w + j * call.w_stride;
    VF32 acc[M];
    hn::Vec<DMF> acc_min[M];
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) acc[r] = hn::Zero(df), acc_min[r] = hn::Zero(dmf);
    for (int64_t b = 0; b < blocks; ++b, block += Q4_K::kBytes) {
      PrefetchAhead<Q4_K::kBytes>(block, call.ahead);
      const float d = HalfToFloat(LoadScalar<uint16_t>(block)), dmin = HalfToFloat(LoadScalar<uint16_t>(block + 2));
      const SixBits six = UnpackSixBits(block + 4);
      const VU8 scale_bytes = hn::BitCast(du8, hn::Set(DU64(), six.scales));
      const auto min_bytes = hn::Set(hn::FixedTag<uint64_t, 1>(), six.mins);
      const auto mins = hn::BitCast(dm16, hn::PromoteTo(hn::FixedTag<uint16_t, 8>(),
                                                        hn::BitCast(hn::FixedTag<uint8_t, 8>(), min_bytes)));
      VI32 sum[M];
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) sum[r] = hn::Zero(di32);
      QUERN_UNROLL
      for (int chunk = 0; chunk < 4; ++chunk) {
        const Codes64 codes = SplitNibbles32(block + 16 + chunk * 32);
        QUERN_UNROLL
        for (int i = 0; i < 64 / kBytes; ++i) {
          const int at_byte = chunk * 64 + i * kBytes;
          const VI16 scales = hn::BitCast(
              di16, hn::TableLookupBytesOr0(scale_bytes, hn::Load(du8, kScaleIndices.at + at_byte)));
          QUERN_UNROLL
          for (int r = 0; r < M; ++r) {
            const auto* quants = reinterpret_cast<const int8_t*>(call.x + r * call.x_stride) + b * 256 + at_byte;
            sum[r] = WordDot(sum[r], PairDot(codes.v[i], hn::LoadU(di8, quants)), scales);
          }
        }
      }
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) {
        const uint8_t* row = call.x + r * call.x_stride;
        const auto* sums = reinterpret_cast<const int16_t*>(row + at.wide_sums) + b * 8;
        const auto sum_min = MulPairs(mins, hn::LoadU(dm16, sums));
        const float xd = LoadScalar<float>(row + at.scales + b * 4);
        acc[r] = hn::MulAdd(hn::ConvertTo(df, sum[r]), hn::Set(df, d * xd), acc[r]);
        acc_min[r] = hn::MulAdd(hn::ConvertTo(dmf, sum_min), hn::Set(dmf, dmin * xd), acc_min[r]);
      }
    }
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) {
      call.y[r * call.y_ld + j] += SumLanes(acc[r]) - hn::GetLane(hn::SumOfLanes(dmf, acc_min[r]));
    }
  }
}

}  // namespace
}  // namespace quern::simd

QUERN_TILE(qk_dot_q4_K)(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride,
                        int64_t m, int64_t n, int64_t k, int64_t ahead) {
  using namespace quern::simd;
  ForDotRows({y, y_ld, static_cast<const uint8_t*>(w), w_stride, static_cast<const uint8_t*>(x), x_stride, n, k, ahead},
             m, []<int M>(const DotCall& call) { DotRows<M>(call); });
}
