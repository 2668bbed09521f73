// qk_dot_{q8_0,q4_0,q5_0,q4_1,q5_1,iq4_nl,mxfp4}: y[r, j] += dot(row j of w, row r of x) for weights @blocks of 32 and
// q8_0 @planar activations.
//
//   for each block:  y += d * xd * (codes . quants - offset * sum(quants)) + added * xd * sum(quants)
//
// The integer sums are exact. offset: that of the format; 128 for bytes with a sign where these are made unsigned for
// the byte dot, else 0. added: of q4_1 and q5_1. With AVX-512 and AVX2 four blocks are one step, the sums of two in
// a vector; elsewhere one block is.
#include <array>
#include <utility>

#include "simd/tiles/quant_block32.h"
#include "simd/tiles/quant_dot.h"

extern "C" quern::simd::FewTile QUERN_NAME(qk_few_q8_0), QUERN_NAME(qk_few_q4_0), QUERN_NAME(qk_few_q5_0),
    QUERN_NAME(qk_few_q4_1), QUERN_NAME(qk_few_q5_1), QUERN_NAME(qk_few_iq4_nl), QUERN_NAME(qk_few_mxfp4);

namespace quern::simd {
namespace {

#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 32

// Integer products of two blocks, of the first in the lower half of the lanes. Every lane takes away its share of an
// offset: in one lane that would dwarf the products, and the float sum would lose their low bits. sums: those of two
// blocks of activations, as one word pair.
template <class Format>
HWY_INLINE VI32 Products(const VU8* codes, const VU8* quants, [[maybe_unused]] int32_t sums) {
  constexpr bool kSigned = kSignedQuants<Format>;
  VI8 x[kInTwo], w[kInTwo];
  QUERN_UNROLL
  for (int i = 0; i < kInTwo; ++i) x[i] = hn::BitCast(DI8(), quants[i]), w[i] = hn::BitCast(DI8(), codes[i]);
#if HWY_MAX_BYTES == 64
  if constexpr (kSigned && !kByteDot) return AddPairs(hn::Zero(DI32()), SignedPairDot(w[0], x[0]));
  const VU8 unsigned_codes = kSigned ? hn::Xor(codes[0], hn::Set(DU8(), 0x80)) : codes[0];
  const VI32 products = ByteDot(hn::Zero(DI32()), unsigned_codes, x[0]);
#else
  if constexpr (kSigned) {
    // Levels take the sign of what they are multiplied with, whose size rows of weights then share; bytes of q8_0 might
    // be -128, which has no other sign.
    constexpr bool kLevels = Format::kLevels != nullptr;
    const auto pairs = [&](int i) { return kLevels ? SignedPairDot(x[i], w[i]) : SignedPairDot(w[i], x[i]); };
    if constexpr (kHalves<Format>) return AddPairs(AddPairs(hn::Zero(DI32()), pairs(0)), pairs(1));
    const __m256i one = AddPairs(hn::Zero(DI32()), pairs(0)).raw, other = AddPairs(hn::Zero(DI32()), pairs(1)).raw;
    return VI32{_mm256_add_epi32(_mm256_blend_epi32(one, other, 0xf0), _mm256_permute2x128_si256(one, other, 0x21))};
  }
  const VI32 products = AddPairs(hn::Zero(DI32()), hn::Add(PairDot(codes[0], x[0]), PairDot(codes[1], x[1])));
#endif
  if constexpr (Format::kOffset == 0) return products;
  // The first word of the pair for the lower half of the lanes, the second for the upper.
  constexpr int kHalf = kBytes / 8;
  alignas(kBytes) static constexpr auto kOffsets = [] {
    std::array<int16_t, kBytes / 2> offsets{};
    for (int lane = 0; lane < 2 * kHalf; ++lane) offsets[lane * 2 + lane / kHalf] = -Format::kOffset / kHalf;
    return offsets;
  }();
  return WordDot(products, hn::Load(DI16(), kOffsets.data()), hn::BitCast(DI16(), hn::Set(DI32(), sums)));
}

// The numbers of four blocks for the lanes of the sums of two, the first of them block kFirst.
template <int kFirst>
HWY_INLINE VF32 Spread(__m128 four) {
#if HWY_MAX_BYTES == 64
  const __m512i two = _mm512_inserti64x4(_mm512_set1_epi32(kFirst), _mm256_set1_epi32(kFirst + 1), 1);
  return VF32{_mm512_permutexvar_ps(two, _mm512_castps128_ps512(four))};
#else
  const __m256i two = _mm256_set_m128i(_mm_set1_epi32(kFirst + 1), _mm_set1_epi32(kFirst));
  return VF32{_mm256_permutevar_ps(_mm256_set_m128(four, four), two)};
#endif
}

HWY_INLINE VF32 ThenZeros(__m128 four) {
#if HWY_MAX_BYTES == 64
  return VF32{_mm512_zextps128_ps512(four)};
#else
  return VF32{_mm256_zextps128_ps256(four)};
#endif
}

// `kCount` floats, then zeros.
template <int kCount>
HWY_INLINE __m128 LoadFour(const float* at) {
  if constexpr (kCount == 4) return _mm_loadu_ps(at);
  return _mm_maskload_ps(at, _mm_cmpgt_epi32(_mm_set1_epi32(kCount), _mm_setr_epi32(0, 1, 2, 3)));
}

// Calls f.operator()<i>() for each i below kCount.
template <int kCount, class F>
HWY_INLINE void ForEach(const F& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (f.template operator()<i>(), ...);
  }(std::make_integer_sequence<int, kCount>());
}

// `kCount` of four blocks.
template <class Format, int kCount, int M>
HWY_INLINE void Step(const uint8_t* block, const uint8_t* x, int64_t x_stride, const PlanarAt<32>& at, int64_t b,
                     VF32* acc, __m128* added) {
  constexpr int kTwos = (kCount + 1) / 2;
  const __m128 d = ScalesOf<Format, kCount>(block);
  [[maybe_unused]] __m128 to_add;
  if constexpr (Format::kAdded) to_add = HalvesOf<Format, kCount>(block, 2);
  VU8 codes[kTwos][kInTwo];
  ForEach<kTwos>([&]<int i>() { TwoBlocks<Format, (kCount - i * 2 > 1)>(block + i * 2 * Format::kBytes, codes[i]); });
  QUERN_UNROLL
  for (int r = 0; r < M; ++r) {
    const uint8_t* row = x + r * x_stride;
    const __m128 xd = LoadFour<kCount>(reinterpret_cast<const float*>(row + at.scales) + b);
    const __m128 scale = _mm_mul_ps(d, xd);
    if constexpr (Format::kAdded) {
      const __m128i sums = _mm_cvtsi64_si128(LoadScalar<int64_t>(row + at.sums + b * 2));
      added[r] = _mm_fmadd_ps(_mm_mul_ps(to_add, xd), _mm_cvtepi32_ps(_mm_cvtepi16_epi32(sums)), added[r]);
    }
    ForEach<kTwos>([&]<int i>() {
      constexpr int kFirst = i * 2;
      VU8 quants[kInTwo];
      const uint8_t* const at_quants = row + (b + kFirst) * 32;
      LoadTwo<Format, (kCount - kFirst > 1)>(at_quants, at_quants + 32, quants);
      const VI32 sum = Products<Format>(codes[i], quants, LoadScalar<int32_t>(row + at.sums + (b + kFirst) * 2));
      acc[r] = hn::MulAdd(hn::ConvertTo(DF32(), sum), Spread<kFirst>(scale), acc[r]);
    });
  }
}

// kStreams rows of the weights side by side: j, j + apart, ..; what a stream reads next is `ahead` bytes on.
template <class Format, int M, int kStreams>
HWY_INLINE void DotStreams(const DotCall& call, int64_t j, int64_t apart, int64_t ahead) {
  const PlanarAt<32> at(call.k);
  const int64_t blocks = call.k / 32;
  const uint8_t* block[kStreams];
  VF32 acc[kStreams][M];
  __m128 added[kStreams][M];
  QUERN_UNROLL
  for (int s = 0; s < kStreams; ++s) {
    block[s] = call.w + (j + s * apart) * call.w_stride;
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) acc[s][r] = hn::Zero(DF32()), added[s][r] = _mm_setzero_ps();
  }
  int64_t b = 0;
  for (; b + 4 <= blocks; b += 4) {
    QUERN_UNROLL
    for (int s = 0; s < kStreams; ++s) {
      PrefetchAhead<4 * Format::kBytes>(block[s], ahead);
      Step<Format, 4, M>(block[s], call.x, call.x_stride, at, b, acc[s], added[s]);
      block[s] += 4 * Format::kBytes;
    }
  }
  QUERN_UNROLL
  for (int s = 0; s < kStreams; ++s) {
    switch (blocks - b) {
      case 1: Step<Format, 1, M>(block[s], call.x, call.x_stride, at, b, acc[s], added[s]); break;
      case 2: Step<Format, 2, M>(block[s], call.x, call.x_stride, at, b, acc[s], added[s]); break;
      case 3: Step<Format, 3, M>(block[s], call.x, call.x_stride, at, b, acc[s], added[s]); break;
    }
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) {
      VF32 sum = acc[s][r];
      if constexpr (Format::kAdded) sum = hn::Add(sum, ThenZeros(added[s][r]));
      call.y[r * call.y_ld + j + s * apart] += SumLanes(sum);
    }
  }
}

// Rows of weights side by side; with AVX2 two, since one chain of sums would be waited for.
constexpr int kSideBySide = kBytes == 64 ? kDotStreams : 2;
// Whether these are the first of as many parts of the n rows, else neighbours: long rows are read a fifth faster apart
// than side by side in a page (AVX2, Zen 3; AVX-512, a Xeon with AMX; dot_float.cc). Nibbles are bound by unpacking.
template <class Format>
constexpr bool kInParts = Format::kBytes == Q8_0::kBytes;

template <class Format, int M>
HWY_NOINLINE void DotRows(const DotCall& call) {
  constexpr int kStreams = M == 1 ? kSideBySide : 1;
  const int64_t part = call.n / kStreams, done = part * kStreams;
  if constexpr (kInParts<Format>) {
    // What a stream reads next lies behind its row, or as far into the same part of the rows that follow these.
    const int64_t lead = (call.ahead + call.w_stride - 1) / call.w_stride;
    for (int64_t j = 0; j < part; ++j) {
      const int64_t rows = j + lead < part ? lead : lead + call.n - part;
      DotStreams<Format, M, kStreams>(call, j, part, rows * call.w_stride);
    }
  } else {
    const int64_t ahead = AheadOf<kStreams>(call);
    for (int64_t j = 0; j < done; j += kStreams) DotStreams<Format, M, kStreams>(call, j, 1, ahead);
  }
  for (int64_t j = done; j < call.n; ++j) DotStreams<Format, M, 1>(call, j, 1, call.ahead);
}

#else

constexpr int kVectors = 32 / kBytes;
template <class Format>
constexpr int kOffset = kSignedQuants<Format> ? 0 : Format::kOffset;

template <class Format, int M>
HWY_NOINLINE void DotRows(const DotCall& call) {
  const DI8 di8;
  const DF32 df;
  const PlanarAt<32> at(call.k);
  for (int64_t j = 0; j < call.n; ++j) {
    const uint8_t* block = call.w + j * call.w_stride;
    VF32 acc[M];
    float offset[M];  // d * xd * sum(quants), or of what is added, where codes have an offset or blocks such a number
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) acc[r] = hn::Zero(df), offset[r] = 0;
    for (int64_t b = 0; b < call.k / 32; ++b, block += Format::kBytes) {
      if (b % 2 == 0) PrefetchAhead<2 * Format::kBytes>(block, call.ahead);
      const float d = BlockScale<Format>(block);
      VU8 codes[kVectors];
      if constexpr (Format::kBytes == Q8_0::kBytes) {
        QUERN_UNROLL
        for (int i = 0; i < kVectors; ++i) codes[i] = hn::LoadU(DU8(), block + 2 + i * kBytes);
      } else {
        BlockQuants<Format>(DU8(), block, codes);
      }
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) {
        const uint8_t* row = call.x + r * call.x_stride;
        VI32 sum = hn::Zero(DI32());
        QUERN_UNROLL
        for (int i = 0; i < kVectors; ++i) {
          const VI8 quants = hn::LoadU(di8, reinterpret_cast<const int8_t*>(row) + b * 32 + i * kBytes);
          const VI16 pairs =
              kSignedQuants<Format> ? SignedPairDot(hn::BitCast(di8, codes[i]), quants) : PairDot(codes[i], quants);
          sum = AddPairs(sum, pairs);
        }
        const float xd = LoadScalar<float>(row + at.scales + b * 4), scale = d * xd;
        acc[r] = hn::MulAdd(hn::ConvertTo(df, sum), hn::Set(df, scale), acc[r]);
        if constexpr (kOffset<Format> != 0 || Format::kAdded) {
          const float times = Format::kAdded ? HalfToFloat(LoadScalar<uint16_t>(block + 2)) * xd : scale;
          offset[r] += times * static_cast<float>(LoadScalar<int16_t>(row + at.sums + b * 2));
        }
      }
    }
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) {
      constexpr float kAway = Format::kAdded ? -1 : kOffset<Format>;
      call.y[r * call.y_ld + j] += SumLanes(acc[r]) - kAway * offset[r];
    }
  }
}

#endif

template <class Format>
HWY_INLINE void Dot(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride, int64_t m,
                    int64_t n, int64_t k, int64_t ahead, int64_t many, FewTile* few) {
  if (ByPanels<Format>(m, n, many)) return few(y, y_ld, w, w_stride, x, x_stride, m, n, k, ahead);
  ForDotRows({y, y_ld, static_cast<const uint8_t*>(w), w_stride, static_cast<const uint8_t*>(x), x_stride, n, k, ahead},
             m, []<int M>(const DotCall& call) { DotRows<Format, M>(call); });
}

}  // namespace
}  // namespace quern::simd

QUERN_TILE(qk_dot_q8_0) QUERN_DOT(Q8_0, q8_0);
QUERN_TILE(qk_dot_q4_0) QUERN_DOT(Q4_0, q4_0);
QUERN_TILE(qk_dot_q5_0) QUERN_DOT(Q5_0, q5_0);
QUERN_TILE(qk_dot_q4_1) QUERN_DOT(Q4_1, q4_1);
QUERN_TILE(qk_dot_q5_1) QUERN_DOT(Q5_1, q5_1);
QUERN_TILE(qk_dot_iq4_nl) QUERN_DOT(IQ4_NL, iq4_nl);
QUERN_TILE(qk_dot_mxfp4) QUERN_DOT(MXFP4, mxfp4);
