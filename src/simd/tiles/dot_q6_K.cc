// qk_dot_q6_K: y[r, j] += dot(row j of w, row r of x) for q6_K @blocks weights and q8_K @planar activations.
//
//   for each block of 256:  y += d * xd * sum_g scale_g * (codes_g . quants_g - 32 * sum_g(quants)),  g: groups of 16
//
// The integer sums are exact: 63 * 127 * 2 fits a 16-bit pair, and 256 * 63 * 127 * 128 fits 32 bits.
#include "simd/tiles/quant_dot.h"

namespace quern::simd {
namespace {

// The sums of 16 quants of a block, and the products with the 16 scales.
using DM16 = hn::CappedTag<int16_t, 16>;
using DM32 = hn::RepartitionToWide<DM16>;
using DMF = hn::RebindToFloat<DM32>;
constexpr int kSumVectors = 16 / hn::MaxLanes(DM16());
constexpr int kHalfVectors = 128 / kBytes;

#if !(HWY_ARCH_X86 && HWY_MAX_BYTES == 64)
// Byte lanes for TableLookupBytesOr0: word lane i of a block's pair products takes scale i / 8, in its high byte.
struct ScaleIndices {
  alignas(64) uint8_t at[256];
  constexpr ScaleIndices() : at() {
    QUERN_UNROLL
    for (int i = 0; i < 128; ++i) {
      at[2 * i] = 0x80;
      at[2 * i + 1] = static_cast<uint8_t>(i / 8);
    }
  }
};
constexpr ScaleIndices kScaleIndices;
#endif

// Codes of one half of a block, 128, in element order.
HWY_INLINE void SplitHalf(const uint8_t* low, const uint8_t* high, VU8* codes) {
#if HWY_ARCH_X86 && HWY_MAX_BYTES == 64
  const __m512i nibbles = _mm512_loadu_si512(low);
  const __m512i top = _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(high)));
#if defined(__GFNI__)
  // Bits 0..1 of a byte go to bits 4..5 for elements 0..31, 2..3 for 32..63, 4..5 for 64..95, 6..7 for 96..127.
  const auto matrices = [](uint64_t first, uint64_t second) {
    return _mm512_inserti64x4(_mm512_set1_epi64(static_cast<int64_t>(first)),
                              _mm256_set1_epi64x(static_cast<int64_t>(second)), 1);
  };
  const __m512i top0 = _mm512_gf2p8affine_epi64_epi8(top, matrices(0x0000000001020000, 0x0000000004080000), 0);
  const __m512i top1 = _mm512_gf2p8affine_epi64_epi8(top, matrices(0x0000000010200000, 0x0000000040800000), 0);
  const __m512i high_nibbles =
      _mm512_gf2p8affine_epi64_epi8(nibbles, _mm512_set1_epi64(0x1020408000000000), 0);
#else
  const __m512i two_bits = _mm512_set1_epi8(0x30);
  const __m512i left = _mm512_inserti64x4(_mm512_set1_epi16(4), _mm256_set1_epi16(2), 1);
  const __m512i right = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(2), 1);
  const __m512i top0 = _mm512_and_si512(_mm512_sllv_epi16(top, left), two_bits);
  const __m512i top1 = _mm512_and_si512(_mm512_srlv_epi16(top, right), two_bits);
  const __m512i high_nibbles = _mm512_and_si512(_mm512_srli_epi16(nibbles, 4), _mm512_set1_epi8(15));
#endif
  codes[0] = VU8{_mm512_ternarylogic_epi64(nibbles, _mm512_set1_epi8(15), top0, 0xea)};  // (nibbles & 15) | top0
  codes[1] = VU8{_mm512_or_si512(high_nibbles, top1)};
#else
  const DU8 d;
  const hn::ScalableTag<uint16_t> d16;
  constexpr int kStream = 32 / kBytes;
  const VU8 two_bits = hn::Set(d, 0x30), four_bits = hn::Set(d, 15);
  QUERN_UNROLL
  for (int i = 0; i < kStream; ++i) {
    const auto top = hn::BitCast(d16, hn::LoadU(d, high + i * kBytes));
    const VU8 first = hn::LoadU(d, low + i * kBytes), second = hn::LoadU(d, low + 32 + i * kBytes);
    const auto bits = [&](auto moved) { return hn::And(hn::BitCast(d, moved), two_bits); };
    codes[i] = hn::Or(hn::And(first, four_bits), bits(hn::ShiftLeft<4>(top)));
    codes[kStream + i] = hn::Or(hn::And(second, four_bits), bits(hn::ShiftLeft<2>(top)));
    codes[2 * kStream + i] = hn::Or(hn::ShiftRight<4>(first), bits(top));
    codes[3 * kStream + i] = hn::Or(hn::ShiftRight<4>(second), bits(hn::ShiftRight<2>(top)));
  }
#endif
}

template <int M>
HWY_NOINLINE void DotRows(const DotCall& call) {
  const DI8 di8;
  const DF32 df;
  const DM16 dm16;
  const DMF dmf;
  const PlanarAt<256> at(call.k);
  for (int64_t j = 0; j < call.n; ++j) {
    const uint8_t* block = call.w + j * call.w_stride;
    VF32 acc[M];
    hn::Vec<DMF> offset[M];
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) acc[r] = hn::Zero(df), offset[r] = hn::Zero(dmf);
    for (int64_t b = 0; b < call.k / 256; ++b, block += Q6_K::kBytes) {
      PrefetchAhead<Q6_K::kBytes>(block, call.ahead);
      const float d = HalfToFloat(LoadScalar<uint16_t>(block + 208));
      const auto* scale_bytes = reinterpret_cast<const int8_t*>(block + 192);
      hn::Vec<DM16> scales[kSumVectors];
      QUERN_UNROLL
      for (int i = 0; i < kSumVectors; ++i) {
        scales[i] = hn::PromoteTo(dm16, hn::LoadU(hn::Rebind<int8_t, DM16>(), scale_bytes + i * hn::MaxLanes(dm16)));
      }
      VI32 sum[M];
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) sum[r] = hn::Zero(DI32());
      QUERN_UNROLL
      for (int half = 0; half < 2; ++half) {
        VU8 codes[kHalfVectors];
        SplitHalf(block + half * 64, block + 128 + half * 32, codes);
        QUERN_UNROLL
        for (int i = 0; i < kHalfVectors; ++i) {
          const int at_byte = half * 128 + i * kBytes;
#if HWY_ARCH_X86 && HWY_MAX_BYTES == 64
          const __m512i each = _mm512_add_epi16(
              _mm512_set1_epi16(static_cast<int16_t>(at_byte / 16)),
              _mm512_setr_epi32(0, 0, 0, 0, 0x10001, 0x10001, 0x10001, 0x10001, 0x20002, 0x20002, 0x20002, 0x20002,
                                0x30003, 0x30003, 0x30003, 0x30003));
          const VI16 scale{_mm512_permutexvar_epi16(each, _mm512_castsi256_si512(scales[0].raw))};
#else
          const hn::FixedTag<uint8_t, 16> d16;
          const auto bytes = hn::LoadU(d16, block + 192);
#if HWY_MAX_BYTES == 32
          const VU8 everywhere = hn::Combine(DU8(), bytes, bytes);
#else
          const VU8 everywhere = bytes;
#endif
          const VI16 scale = hn::ShiftRight<8>(hn::BitCast(
              DI16(), hn::TableLookupBytesOr0(everywhere, hn::Load(DU8(), kScaleIndices.at + at_byte))));
#endif
          QUERN_UNROLL
          for (int r = 0; r < M; ++r) {
            const auto* quants = reinterpret_cast<const int8_t*>(call.x + r * call.x_stride) + b * 256 + at_byte;
            sum[r] = WordDot(sum[r], PairDot(codes[i], hn::LoadU(di8, quants)), scale);
          }
        }
      }
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) {
        const uint8_t* row = call.x + r * call.x_stride;
        const auto* sums = reinterpret_cast<const int16_t*>(row + at.sums) + b * 16;
        auto scaled_sums = hn::Zero(DM32());
        QUERN_UNROLL
        for (int i = 0; i < kSumVectors; ++i) {
          scaled_sums = hn::Add(scaled_sums, MulPairs(scales[i], hn::LoadU(dm16, sums + i * hn::MaxLanes(dm16))));
        }
        const float scale = d * LoadScalar<float>(row + at.scales + b * 4);
        acc[r] = hn::MulAdd(hn::ConvertTo(df, sum[r]), hn::Set(df, scale), acc[r]);
        offset[r] = hn::MulAdd(hn::ConvertTo(dmf, scaled_sums), hn::Set(dmf, scale), offset[r]);
      }
    }
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) {
      call.y[r * call.y_ld + j] += SumLanes(acc[r]) - 32 * hn::GetLane(hn::SumOfLanes(dmf, offset[r]));
    }
  }
}

}  // namespace
}  // namespace quern::simd

QUERN_TILE(qk_dot_q6_K)(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride,
                        int64_t m, int64_t n, int64_t k, int64_t ahead) {
  using namespace quern::simd;
  ForDotRows({y, y_ld, static_cast<const uint8_t*>(w), w_stride, static_cast<const uint8_t*>(x), x_stride, n, k, ahead},
             m, []<int M>(const DotCall& call) { DotRows<M>(call); });
}
