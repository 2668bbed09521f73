// qk_dot_q8_0, qk_dot_q4_0: y[r, j] += dot(row j of w, row r of x) for weights @blocks of 32 and q8_0 @planar
// activations.
//
//   for each block:  y += d * xd * (codes . quants - offset * sum(quants))
//
// The integer sums are exact. offset: 8 for q4_0; 128 for q8_0 where its quants are made unsigned for the byte dot,
// else 0. With 512-bit vectors four blocks are one step, two to a vector; below, one block is.
#include "simd/tiles/quant_dot.h"

namespace quern::simd {
namespace {

#if HWY_ARCH_X86 && HWY_MAX_BYTES == 64

// Two blocks of 32 codes (or one, then zeros) as bytes in element order; q8_0 as signed bytes.
template <class Format, bool kTwo>
HWY_INLINE __m512i LoadCodes(const uint8_t* block) {
  if constexpr (Format::kBytes == Q8_0::kBytes) {
    const auto* bytes = reinterpret_cast<const __m256i*>(block + 2);
    const __m512i low = _mm512_castsi256_si512(_mm256_loadu_si256(bytes));
    if constexpr (!kTwo) return low;
    return _mm512_inserti64x4(low, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + 2 + Format::kBytes)), 1);
  } else {
    // Both halves of a 256-bit half hold the block's 16 bytes: the first gives the low nibbles, the second the high.
    const auto load = [&](int i) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 2 + i * Format::kBytes));
    };
    __m512i packed = _mm512_broadcast_i32x4(load(0));
    if constexpr (kTwo) packed = _mm512_mask_broadcast_i32x4(packed, 0xff00, load(1));
#if defined(__GFNI__)
    const __m512i matrix =
        _mm512_setr_epi64(0x0102040800000000, 0x0102040800000000, 0x1020408000000000, 0x1020408000000000,
                          0x0102040800000000, 0x0102040800000000, 0x1020408000000000, 0x1020408000000000);
    return _mm512_gf2p8affine_epi64_epi8(packed, matrix, 0);
#else
    const __m512i shift =
        _mm512_setr_epi64(0, 0, 0x0004000400040004, 0x0004000400040004, 0, 0, 0x0004000400040004, 0x0004000400040004);
    return _mm512_and_si512(_mm512_srlv_epi16(packed, shift), _mm512_set1_epi8(15));
#endif
  }
}

// Integer products of two blocks, the first in lanes 0..7. sums: those of the two blocks of activations, as one word
// pair.
template <class Format>
HWY_INLINE VI32 Products(__m512i codes, VI8 quants, int32_t sums) {
  constexpr bool kSigned = Format::kBytes == Q8_0::kBytes;
  if constexpr (kSigned && !kByteDot) return AddPairs(hn::Zero(DI32()), SignedPairDot(VI8{codes}, quants));
  constexpr int16_t kOffset = kSigned ? 128 : 8;
  // Each lane takes an eighth of its block's offset, lanes 0..7 by the first word of the pair, lanes 8..15 by the
  // second: in one lane it would dwarf the products, and the float sum would lose their low bits.
  constexpr int16_t kEach = -kOffset / 8;
  const __m512i offsets =
      _mm512_inserti64x4(_mm512_set1_epi32(static_cast<uint16_t>(kEach)), _mm256_set1_epi32(kEach * 65536), 1);
  const VU8 unsigned_codes{kSigned ? _mm512_xor_si512(codes, _mm512_set1_epi8(-128)) : codes};
  return WordDot(ByteDot(hn::Zero(DI32()), unsigned_codes, quants), VI16{offsets},
                 hn::BitCast(DI16(), hn::Set(DI32(), sums)));
}

// `kCount` of four blocks.
template <class Format, int kCount, int M>
HWY_INLINE void Step(const uint8_t* block, const uint8_t* x, int64_t x_stride, const PlanarAt<32>& at, int64_t b,
                     VF32* acc) {
  constexpr __mmask8 kLive = (1 << kCount) - 1;
  uint64_t halves = 0;
  for (int i = kCount - 1; i >= 0; --i) halves = halves << 16 | LoadScalar<uint16_t>(block + i * Format::kBytes);
  const __m128 d = _mm_cvtph_ps(_mm_cvtsi64_si128(static_cast<int64_t>(halves)));
  __m512i codes[2];
  codes[0] = LoadCodes<Format, (kCount > 1)>(block);
  if constexpr (kCount > 2) codes[1] = LoadCodes<Format, (kCount > 3)>(block + 2 * Format::kBytes);
  QUERN_UNROLL
  for (int r = 0; r < M; ++r) {
    const uint8_t* row = x + r * x_stride;
    const auto* scales = reinterpret_cast<const float*>(row + at.scales) + b;
    const __m128 xd = kCount == 4 ? _mm_loadu_ps(scales) : _mm_maskz_loadu_ps(kLive, scales);
    const __m512 scale = _mm512_castps128_ps512(_mm_mul_ps(d, xd));
    QUERN_UNROLL
    for (int i = 0; i < (kCount + 1) / 2; ++i) {
      const VI8 quants = hn::LoadU(DI8(), reinterpret_cast<const int8_t*>(row) + b * 32 + i * 64);
      const VI32 sum = Products<Format>(codes[i], quants, LoadScalar<int32_t>(row + at.sums + b * 2 + i * 4));
      const __m512i two = _mm512_inserti64x4(_mm512_set1_epi32(2 * i), _mm256_set1_epi32(2 * i + 1), 1);
      acc[r] = hn::MulAdd(hn::ConvertTo(DF32(), sum), VF32{_mm512_permutexvar_ps(two, scale)}, acc[r]);
    }
  }
}

// Rows [j, j + kStreams) of the weights, side by side.
template <class Format, int M, int kStreams>
HWY_INLINE void DotStreams(const DotCall& call, int64_t j) {
  const PlanarAt<32> at(call.k);
  const int64_t blocks = call.k / 32, ahead = AheadOf<kStreams>(call);
  const uint8_t* block[kStreams];
  VF32 acc[kStreams][M];
  QUERN_UNROLL
  for (int s = 0; s < kStreams; ++s) {
    block[s] = call.w + (j + s) * call.w_stride;
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) acc[s][r] = hn::Zero(DF32());
  }
  int64_t b = 0;
  for (; b + 4 <= blocks; b += 4) {
    QUERN_UNROLL
    for (int s = 0; s < kStreams; ++s) {
      PrefetchAhead<4 * Format::kBytes>(block[s], ahead);
      Step<Format, 4, M>(block[s], call.x, call.x_stride, at, b, acc[s]);
      block[s] += 4 * Format::kBytes;
    }
  }
  QUERN_UNROLL
  for (int s = 0; s < kStreams; ++s) {
    switch (blocks - b) {
      case 1: Step<Format, 1, M>(block[s], call.x, call.x_stride, at, b, acc[s]); break;
      case 2: Step<Format, 2, M>(block[s], call.x, call.x_stride, at, b, acc[s]); break;
      case 3: Step<Format, 3, M>(block[s], call.x, call.x_stride, at, b, acc[s]); break;
    }
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) call.y[r * call.y_ld + j + s] += SumLanes(acc[s][r]);
  }
}

template <class Format, int M>
HWY_NOINLINE void DotRows(const DotCall& call) {
  constexpr int kStreams = M == 1 ? kDotStreams : 1;
  int64_t j = 0;
  for (; j + kStreams <= call.n; j += kStreams) DotStreams<Format, M, kStreams>(call, j);
  for (; j < call.n; ++j) DotStreams<Format, M, 1>(call, j);
}

#else

constexpr int kVectors = 32 / kBytes;

template <class Format, int M>
HWY_NOINLINE void DotRows(const DotCall& call) {
  const DI8 di8;
  const DF32 df;
  const PlanarAt<32> at(call.k);
  for (int64_t j = 0; j < call.n; ++j) {
    const uint8_t* block = call.w + j * call.w_stride;
    VF32 acc[M];
    float offset[M];  // d * xd * sum(quants), for q4_0
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) acc[r] = hn::Zero(df), offset[r] = 0;
    for (int64_t b = 0; b < call.k / 32; ++b, block += Format::kBytes) {
      if (b % 2 == 0) PrefetchAhead<2 * Format::kBytes>(block, call.ahead);
      const float d = HalfToFloat(LoadScalar<uint16_t>(block));
      VI8 codes[kVectors];
      QUERN_UNROLL
      for (int i = 0; i < kVectors; ++i) {
        if constexpr (Format::kBytes == Q8_0::kBytes) {
          codes[i] = hn::LoadU(di8, reinterpret_cast<const int8_t*>(block + 2) + i * kBytes);
        } else {
          const hn::FixedTag<uint8_t, 16> half;
          const auto packed = hn::LoadU(half, block + 2);
          const auto low = hn::And(packed, hn::Set(half, 15)), high = hn::ShiftRight<4>(packed);
#if HWY_MAX_BYTES == 32
          codes[i] = hn::BitCast(di8, hn::Combine(DU8(), high, low));
#else
          codes[i] = hn::BitCast(di8, i == 0 ? low : high);
#endif
        }
      }
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) {
        const uint8_t* row = call.x + r * call.x_stride;
        VI32 sum = hn::Zero(DI32());
        QUERN_UNROLL
        for (int i = 0; i < kVectors; ++i) {
          const VI8 quants = hn::LoadU(di8, reinterpret_cast<const int8_t*>(row) + b * 32 + i * kBytes);
          const VI16 pairs = Format::kBytes == Q8_0::kBytes ? SignedPairDot(codes[i], quants)
                                                            : PairDot(hn::BitCast(DU8(), codes[i]), quants);
          sum = AddPairs(sum, pairs);
        }
        const float scale = d * LoadScalar<float>(row + at.scales + b * 4);
        acc[r] = hn::MulAdd(hn::ConvertTo(df, sum), hn::Set(df, scale), acc[r]);
        if constexpr (Format::kBytes == Q4_0::kBytes) {
          offset[r] += scale * static_cast<float>(LoadScalar<int16_t>(row + at.sums + b * 2));
        }
      }
    }
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) call.y[r * call.y_ld + j] += SumLanes(acc[r]) - 8 * offset[r];
  }
}

#endif

}  // namespace
}  // namespace quern::simd

QUERN_TILE(qk_dot_q8_0)(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride,
                        int64_t m, int64_t n, int64_t k, int64_t ahead) {
  using namespace quern::simd;
  ForDotRows({y, y_ld, static_cast<const uint8_t*>(w), w_stride, static_cast<const uint8_t*>(x), x_stride, n, k, ahead},
             m, []<int M>(const DotCall& call) { DotRows<Q8_0, M>(call); });
}

QUERN_TILE(qk_dot_q4_0)(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride,
                        int64_t m, int64_t n, int64_t k, int64_t ahead) {
  using namespace quern::simd;
  ForDotRows({y, y_ld, static_cast<const uint8_t*>(w), w_stride, static_cast<const uint8_t*>(x), x_stride, n, k, ahead},
             m, []<int M>(const DotCall& call) { DotRows<Q4_0, M>(call); });
}
