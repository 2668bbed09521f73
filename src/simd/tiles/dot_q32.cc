// qk_dot_{q8_0,q4_0,q5_0,q4_1,q5_1,iq4_nl,mxfp4}: y[r, j] += dot(row j of w, row r of x) for weights @blocks of 32 and
// q8_0 @planar activations.
//
//   for each block:  y += d * xd * (codes . quants - offset * sum(quants)) + added * xd * sum(quants)
//
// The integer sums are exact. offset: that of the format; 128 for bytes with a sign where these are made unsigned for
// the byte dot, else 0. added: of q4_1 and q5_1. With AVX-512 and AVX2 four blocks are one step, the sums of kBlocks
// of them in a vector (quant_block32.h); elsewhere one block is.
#include <array>

#include "simd/tiles/quant_block32.h"
#include "simd/tiles/quant_dot.h"

extern "C" quern::simd::FewTile QUERN_NAME(qk_few_q8_0), QUERN_NAME(qk_few_q4_0), QUERN_NAME(qk_few_q5_0),
    QUERN_NAME(qk_few_q4_1), QUERN_NAME(qk_few_q5_1), QUERN_NAME(qk_few_iq4_nl), QUERN_NAME(qk_few_mxfp4);

namespace quern::simd {
namespace {

#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 32

// What the products of kBlocks blocks are summed up from: their lanes' shares of the offset of a format, each taken
// away where the sum is an integer. In one lane it would dwarf the products, and the float sum would lose their low
// bits. Rows of weights that are multiplied side by side have it in common. sums: those of these blocks of activations,
// words.
template <class Format>
HWY_INLINE VI32 FromOffset([[maybe_unused]] const uint8_t* sums) {
  constexpr int kLanesEach = kLanes / kBlocks<Format>;
  if constexpr (Format::kOffset == 0 || kWithSign<Format>) {
    return hn::Zero(DI32());
  } else if constexpr (kBlocks<Format> == 2) {
    // The first word of the pair for the lower half of the lanes, the second for the upper.
    alignas(kBytes) static constexpr auto kShares = [] {
      std::array<int16_t, kBytes / 2> shares{};
      for (int lane = 0; lane < kLanes; ++lane) shares[lane * 2 + lane / kLanesEach] = -Format::kOffset / kLanesEach;
      return shares;
    }();
    return MulPairs(hn::Load(DI16(), kShares.data()), hn::BitCast(DI16(), hn::Set(DI32(), LoadScalar<int32_t>(sums))));
  } else {
    // Each lane has the word of its block twice.
    alignas(kBytes) static constexpr auto kWords = [] {
      std::array<uint8_t, kBytes> words{};
      for (int byte = 0; byte < kBytes; ++byte)
        words[byte] = static_cast<uint8_t>(byte / 4 / kLanesEach * 2 + byte % 2);
      return words;
    }();
    const VU8 four = hn::BitCast(DU8(), hn::Set(DU64(), LoadScalar<uint64_t>(sums)));
    return MulPairs(hn::BitCast(DI16(), hn::TableLookupBytes(four, hn::Load(DU8(), kWords.data()))),
                    hn::Set(DI16(), -Format::kOffset / (kLanesEach * 2)));
  }
}

// sum + the integer products of kBlocks blocks.
template <class Format>
HWY_INLINE VI32 AddProducts(VI32 sum, const VU8* weights, const VU8* activations) {
  VI8 x[kVectors<Format>], w[kVectors<Format>];
  QUERN_UNROLL
  for (int i = 0; i < kVectors<Format>; ++i)
    x[i] = hn::BitCast(DI8(), activations[i]), w[i] = hn::BitCast(DI8(), weights[i]);
  if constexpr (kByteDot) {
    QUERN_UNROLL
    for (int i = 0; i < kVectors<Format>; ++i)
      sum = ByteDot(sum, kHalves<Format> ? weights[i] : hn::Xor(weights[i], hn::Set(DU8(), 0x80)), x[i]);
    return sum;
  } else if constexpr (kWithSign<Format>) {
    // Levels take the sign of what they are multiplied with, whose size rows of weights then share; bytes of q8_0 might
    // be -128, which has no other sign.
    const auto pairs = [&](int i) { return kHalves<Format> ? SignedPairDot(x[i], w[i]) : SignedPairDot(w[i], x[i]); };
    if constexpr (kHalves<Format>) return AddPairs(AddPairs(sum, pairs(0)), pairs(1));
#if HWY_MAX_BYTES == 64
    return AddPairs(sum, pairs(0));
#else
    const __m256i one = AddPairs(sum, pairs(0)).raw, other = AddPairs(sum, pairs(1)).raw;
    return VI32{_mm256_add_epi32(_mm256_blend_epi32(one, other, 0xf0), _mm256_permute2x128_si256(one, other, 0x21))};
#endif
  } else {
    return AddPairs(sum, hn::Add(PairDot(weights[0], x[0]), PairDot(weights[1], x[1])));
  }
}

// The numbers of four blocks for the lanes of the sums of kBlocks, of which kFirst is the first.
template <class Format, int kFirst>
HWY_INLINE VF32 Spread(__m128 four) {
  constexpr int kLanesEach = kLanes / kBlocks<Format>;
  alignas(kBytes) static constexpr auto kIndices = [] {
    std::array<int32_t, kLanes> indices{};
    for (int lane = 0; lane < kLanes; ++lane) indices[lane] = kFirst + lane / kLanesEach;
    return indices;
  }();
#if HWY_MAX_BYTES == 64
  return VF32{_mm512_permutexvar_ps(_mm512_load_si512(kIndices.data()), _mm512_zextps128_ps512(four))};
#else
  const auto* const indices = reinterpret_cast<const __m256i*>(kIndices.data());
  return VF32{_mm256_permutevar_ps(_mm256_set_m128(four, four), _mm256_load_si256(indices))};
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

// Calls f.operator()<first, count>() for the parts of `kCount` blocks that share a vector of sums.
template <class Format, int kCount, int kFirst = 0, class F>
HWY_INLINE void ForParts(const F& f) {
  constexpr int kPart = kCount - kFirst < kBlocks<Format> ? kCount - kFirst : kBlocks<Format>;
  f.template operator()<kFirst, kPart>();
  if constexpr (kFirst + kPart < kCount) ForParts<Format, kCount, kFirst + kPart>(f);
}

// `kCount` of four blocks of weights: those that share a vector of sums are at the first of them.
template <class Format, int kCount>
struct Weights {
  __m128 d, added;
  VU8 quants[4][kVectors<Format>];

  HWY_INLINE explicit Weights(const uint8_t* block) : d(ScalesOf<Format, kCount>(block)) {
    if constexpr (Format::kAdded) added = HalvesOf<Format, kCount>(block, 2);
    ForParts<Format, kCount>(
        [&]<int kFirst, int kPart>() { LoadWeights<Format, kPart>(block + kFirst * Format::kBytes, quants[kFirst]); });
  }
};

// And of activations: blocks b.. of a row.
template <class Format, int kCount>
struct Activations {
  __m128 d, sums;
  VI32 offset[4];
  VU8 quants[4][kVectors<Format>];

  HWY_INLINE Activations(const uint8_t* row, const PlanarAt<32>& at, int64_t b)
      : d(LoadFour<kCount>(reinterpret_cast<const float*>(row + at.scales) + b)) {
    const uint8_t* const words = row + at.sums + b * 2;
    if constexpr (Format::kAdded) {
      const __m128i four = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(words));
      sums = _mm_mul_ps(d, _mm_cvtepi32_ps(_mm_cvtepi16_epi32(four)));
    }
    ForParts<Format, kCount>([&]<int kFirst, int kPart>() {
      offset[kFirst] = FromOffset<Format>(words + kFirst * 2);
      LoadActivations<Format, kPart>(row + (b + kFirst) * 32, quants[kFirst]);
    });
  }
};

template <class Format, int kCount>
HWY_INLINE void Step(const Weights<Format, kCount>& w, const Activations<Format, kCount>& x, VF32& acc, __m128& added) {
  const __m128 scale = _mm_mul_ps(w.d, x.d);
  if constexpr (Format::kAdded) added = _mm_fmadd_ps(w.added, x.sums, added);
  ForParts<Format, kCount>([&]<int kFirst, int kPart>() {
    const VI32 sum = AddProducts<Format>(x.offset[kFirst], w.quants[kFirst], x.quants[kFirst]);
    acc = hn::MulAdd(hn::ConvertTo(DF32(), sum), Spread<Format, kFirst>(scale), acc);
  });
}

// Whether memory is the limit, not unpacking: rows of weights side by side are then the first of as many parts of the n
// rows, else neighbours. Long rows are read a fifth faster apart than side by side in a page (AVX2, Zen 3; AVX-512, a
// Xeon with AMX; dot_float.cc).
template <class Format>
constexpr bool kInParts = Format::kBytes == Q8_0::kBytes;

// kStreams rows of the weights side by side, j, j + apart, .., with M rows of activations.
template <class Format, int M, int kStreams>
class DotStreams {
 public:
  HWY_INLINE DotStreams(const DotCall& call, int64_t j, int64_t apart)
      : call_(call), at_(call.k), j_(j), apart_(apart) {
    QUERN_UNROLL
    for (int s = 0; s < kStreams; ++s) {
      block_[s] = call.w + (j + s * apart) * call.w_stride;
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) acc_[s][r] = hn::Zero(DF32()), added_[s][r] = _mm_setzero_ps();
    }
  }

  // What a stream reads next is `ahead` bytes on.
  HWY_INLINE void Run(int64_t ahead) {
    const int64_t blocks = call_.k / 32;
    int64_t b = 0;
    for (; b + 4 <= blocks; b += 4) Blocks<4>(b, ahead);
    if ((blocks & 2) != 0) Blocks<2>(b, ahead), b += 2;
    if ((blocks & 1) != 0) Blocks<1>(b, ahead);
    QUERN_UNROLL
    for (int s = 0; s < kStreams; ++s) {
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) {
        VF32 sum = acc_[s][r];
        if constexpr (Format::kAdded) sum = hn::Add(sum, ThenZeros(added_[s][r]));
        call_.y[r * call_.y_ld + j_ + s * apart_] += SumLanes(sum);
      }
    }
  }

 private:
  // Either side may have several rows; what is made of the other's only one is made once.
  template <int kCount>
  HWY_INLINE void Blocks(int64_t b, int64_t ahead) {
    static_assert(M == 1 || kStreams == 1);
    const auto weights = [&](int s) {
      const uint8_t* const block = block_[s];
      block_[s] += kCount * Format::kBytes;
      PrefetchAhead<kCount * Format::kBytes>(block, ahead);
      return Weights<Format, kCount>(block);
    };
    if constexpr (M == 1 && kInParts<Format>) {
      // One after the other: the compiler would gather the loads of all, and to such bursts memory gives a sixth less.
      QUERN_UNROLL
      for (int s = 0; s < kStreams; ++s) {
        const Activations<Format, kCount> x(call_.x, at_, b);
        Step(weights(s), x, acc_[s][0], added_[s][0]);
        asm volatile("" ::: "memory");
      }
    } else if constexpr (M == 1) {
      const Activations<Format, kCount> x(call_.x, at_, b);
      QUERN_UNROLL
      for (int s = 0; s < kStreams; ++s) Step(weights(s), x, acc_[s][0], added_[s][0]);
    } else {
      const Weights<Format, kCount> w = weights(0);
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) {
        const Activations<Format, kCount> x(call_.x + r * call_.x_stride, at_, b);
        Step(w, x, acc_[0][r], added_[0][r]);
      }
    }
  }

  const DotCall& call_;
  const PlanarAt<32> at_;
  const int64_t j_, apart_;
  const uint8_t* block_[kStreams];
  VF32 acc_[kStreams][M];
  __m128 added_[kStreams][M];
};

// Rows of weights side by side; with AVX2 two, since one chain of sums would be waited for.
constexpr int kSideBySide = kBytes == 64 ? kDotStreams : 2;

template <class Format, int M>
HWY_NOINLINE void DotRows(const DotCall& call) {
  constexpr int kStreams = M == 1 ? kSideBySide : 1;
  const int64_t part = call.n / kStreams, done = part * kStreams;
  if constexpr (kInParts<Format>) {
    // What a stream reads next lies behind its row, or as far into the same part of the rows that follow these.
    const int64_t lead = (call.ahead + call.w_stride - 1) / call.w_stride;
    for (int64_t j = 0; j < part; ++j) {
      const int64_t rows = j + lead < part ? lead : lead + call.n - part;
      DotStreams<Format, M, kStreams>(call, j, part).Run(rows * call.w_stride);
    }
  } else {
    const int64_t ahead = AheadOf<kStreams>(call);
    for (int64_t j = 0; j < done; j += kStreams) DotStreams<Format, M, kStreams>(call, j, 1).Run(ahead);
  }
  for (int64_t j = done; j < call.n; ++j) DotStreams<Format, M, 1>(call, j, 1).Run(call.ahead);
}

#else

constexpr int kInBlock = 32 / kBytes;  // vectors
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
      VU8 codes[kInBlock];
      if constexpr (Format::kBytes == Q8_0::kBytes) {
        QUERN_UNROLL
        for (int i = 0; i < kInBlock; ++i) codes[i] = hn::LoadU(DU8(), block + 2 + i * kBytes);
      } else {
        BlockQuants<Format>(DU8(), block, codes);
      }
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) {
        const uint8_t* row = call.x + r * call.x_stride;
        VI32 sum = hn::Zero(DI32());
        QUERN_UNROLL
        for (int i = 0; i < kInBlock; ++i) {
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
