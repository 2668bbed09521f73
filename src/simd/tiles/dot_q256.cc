// qk_dot_F of the formats of blocks of 256: y[r, j] += dot(row j of w, row r of x) for @blocks weights of 256 and q8_K
// @planar activations.
//
//   q2_K, q4_K, q5_K  y += xd * (d * sum_g scale_g * (codes_g . quants_g) - dmin * sum_g min_g * sum_g(quants))
//   q3_K, q6_K        y += xd * (d * sum_g scale_g * (codes_g . quants_g) - offset d * sum_g scale_g * sum_g(quants))
//   tq1_0, tq2_0      y += xd * d * (codes . quants - offset * sum(quants))
//   q8_K              y += xd * d * (codes . quants)
//   iq..              y += xd * d * sum_g scale_g * (levels_g . quants_g)
//
// for each block; g: its groups of 32 or 16. The integer sums are exact: codes are below 64, so
// a pair of products fits 16 bits, as one of levels with their signs does. Each weight block is decoded once and used
// for all m rows, so m = 1 streams the weights once, in address order, with a prefetch `ahead` bytes in front: that,
// not arithmetic, is its speed.
#include "simd/tiles/quant_codes.h"
#include "simd/tiles/quant_dot.h"

extern "C" quern::simd::FewTile QUERN_NAME(qk_few_q2_K), QUERN_NAME(qk_few_q3_K), QUERN_NAME(qk_few_q4_K),
    QUERN_NAME(qk_few_q5_K), QUERN_NAME(qk_few_q6_K), QUERN_NAME(qk_few_q8_K), QUERN_NAME(qk_few_tq1_0),
    QUERN_NAME(qk_few_tq2_0), QUERN_NAME(qk_few_iq4_xs), QUERN_NAME(qk_few_iq2_xxs), QUERN_NAME(qk_few_iq2_xs),
    QUERN_NAME(qk_few_iq2_s), QUERN_NAME(qk_few_iq3_xxs), QUERN_NAME(qk_few_iq3_s), QUERN_NAME(qk_few_iq1_s),
    QUERN_NAME(qk_few_iq1_m);

namespace quern::simd {
namespace {

// A block's header: what the sums of groups are multiplied by.
//   Scales(at)       word lanes for the pair products of elements at .. at + kBytes - 1
//   away             words that multiply the sums of quants, Sums(); the result is taken away kAway times
//   AwayScale(...)   its factor, given xd and d * xd
template <class Format>
struct DotHeader;

template <class Format>
  requires(Format::kHasMins && Format::kGroup == 32)
struct DotHeader<Format> {
  using Words = hn::FixedTag<int16_t, 8>;
  static constexpr int kVectors = 1;
  static constexpr WordIndices<16, 128, 0> kIndices{};  // word i of the pair products of a block: sub-block i / 16
  VU8 scales;
  static constexpr float kAway = 1;
  hn::Vec<Words> away[1];
  float d, dmin;

  HWY_INLINE explicit DotHeader(const uint8_t* block) {
    d = HalfToFloat(LoadScalar<uint16_t>(block + Format::kD));
    dmin = HalfToFloat(LoadScalar<uint16_t>(block + Format::kD + 2));
    const SixBits six = UnpackSixBits(block + Format::kScales);
    scales = hn::BitCast(DU8(), hn::Set(DU64(), six.scales));
    const auto mins = hn::BitCast(hn::FixedTag<uint8_t, 8>(), hn::Set(hn::FixedTag<uint64_t, 1>(), six.mins));
    away[0] = hn::BitCast(Words(), hn::PromoteTo(hn::FixedTag<uint16_t, 8>(), mins));
  }
  HWY_INLINE VI16 Scales(int at) const {
    return hn::BitCast(DI16(), hn::TableLookupBytesOr0(scales, hn::Load(DU8(), kIndices.at + at)));
  }
  HWY_INLINE float AwayScale(float xd, float) const { return dmin * xd; }
  HWY_INLINE static const int16_t* Sums(const uint8_t* row, const PlanarAt<256>& at, int64_t b) {
    return reinterpret_cast<const int16_t*>(row + at.wide_sums) + b * 8;
  }
};

// Sixteen scales with a sign, which the sums of groups of 16 are multiplied by.
struct GroupsOf16 {
  using Words = hn::CappedTag<int16_t, 16>;
  static constexpr int kVectors = 16 / hn::MaxLanes(Words());
  static HWY_INLINE void Widen(hn::Vec<D16I> bytes, hn::Vec<Words>* words) {
    alignas(16) int8_t at[16];
    hn::Store(bytes, D16I(), at);
    QUERN_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      words[i] = hn::PromoteTo(Words(), hn::LoadU(hn::Rebind<int8_t, Words>(), at + i * hn::MaxLanes(Words())));
    }
  }
#if HWY_ARCH_X86 && HWY_MAX_BYTES == 64
  hn::Vec<Words> scales;
  HWY_INLINE explicit GroupsOf16(hn::Vec<D16I> bytes) { Widen(bytes, &scales); }
  HWY_INLINE VI16 Scales(int at) const {
    const __m512i each =
        _mm512_add_epi16(_mm512_set1_epi16(static_cast<int16_t>(at / 16)),
                         _mm512_setr_epi32(0, 0, 0, 0, 0x10001, 0x10001, 0x10001, 0x10001, 0x20002, 0x20002, 0x20002,
                                           0x20002, 0x30003, 0x30003, 0x30003, 0x30003));
    return VI16{_mm512_permutexvar_epi16(each, _mm512_zextsi256_si512(scales.raw))};
  }
#else
  static constexpr WordIndices<8, 128, 1> kIndices{};  // word i of the pair products of a block: group i / 8
  VU8 scales;
  HWY_INLINE explicit GroupsOf16(hn::Vec<D16I> bytes) {
    alignas(16) int8_t at[16];
    hn::Store(bytes, D16I(), at);
    scales = hn::BitCast(DU8(), hn::LoadDup128(DI8(), at));
  }
  HWY_INLINE VI16 Scales(int at) const {
    const auto bytes = hn::TableLookupBytesOr0(scales, hn::Load(DU8(), kIndices.at + at));
    return hn::ShiftRight<8>(hn::BitCast(DI16(), bytes));  // signed
  }
#endif
  HWY_INLINE static const int16_t* Sums(const uint8_t* row, const PlanarAt<256>& at, int64_t b) {
    return reinterpret_cast<const int16_t*>(row + at.sums) + b * 16;
  }
};

HWY_INLINE hn::Vec<D16I> ScalesOf16(const uint8_t* block, Q6_K) {
  return hn::LoadU(D16I(), reinterpret_cast<const int8_t*>(block + Q6_K::kScales));
}
HWY_INLINE hn::Vec<D16I> ScalesOf16(const uint8_t* block, Q3_K) { return ScalesOfThreeBits(block); }

// q3_K, q6_K.
template <class Format>
  requires(!Format::kHasMins && Format::kGroup == 16 && !Format::kGrid)
struct DotHeader<Format> : GroupsOf16 {
  static constexpr float kAway = Format::kOffset;
  hn::Vec<Words> away[kVectors];
  float d;
  HWY_INLINE explicit DotHeader(const uint8_t* block) : DotHeader(block, ScalesOf16(block, Format())) {}
  HWY_INLINE DotHeader(const uint8_t* block, hn::Vec<D16I> scales) : GroupsOf16(scales) {
    d = HalfToFloat(LoadScalar<uint16_t>(block + Format::kD));
    Widen(scales, away);
  }
  HWY_INLINE float AwayScale(float, float scale) const { return scale; }
};

template <>
struct DotHeader<Q2_K> : GroupsOf16 {
  static constexpr float kAway = 1;
  hn::Vec<Words> away[kVectors];
  float d, dmin;
  HWY_INLINE explicit DotHeader(const uint8_t* block) : DotHeader(block, hn::LoadU(D16(), block + Q2_K::kScales)) {}
  HWY_INLINE DotHeader(const uint8_t* block, hn::Vec<D16> both)
      : GroupsOf16(hn::BitCast(D16I(), hn::And(both, hn::Set(D16(), 15)))) {
    d = HalfToFloat(LoadScalar<uint16_t>(block + Q2_K::kD));
    dmin = HalfToFloat(LoadScalar<uint16_t>(block + Q2_K::kD + 2));
    Widen(hn::BitCast(D16I(), hn::ShiftRight<4>(both)), away);
  }
  HWY_INLINE float AwayScale(float xd, float) const { return dmin * xd; }
};

template <>
struct DotHeader<IQ4_XS> {
  using Words = hn::FixedTag<int16_t, 8>;
  static constexpr int kVectors = 0;
  static constexpr float kAway = 0;
  static constexpr WordIndices<16, 128, 1> kIndices{};  // word i of the pair products of a block: group i / 16
  VU8 scales;
  float d;
  HWY_INLINE explicit DotHeader(const uint8_t* block) {
    d = HalfToFloat(LoadScalar<uint16_t>(block));
    alignas(16) int8_t at[16] = {};
    hn::Store(ScalesOfLevels(block), hn::FixedTag<int8_t, 8>(), at);
    scales = hn::BitCast(DU8(), hn::LoadDup128(DI8(), at));
  }
  HWY_INLINE VI16 Scales(int at) const {
    const auto bytes = hn::TableLookupBytesOr0(scales, hn::Load(DU8(), kIndices.at + at));
    return hn::ShiftRight<8>(hn::BitCast(DI16(), bytes));  // signed
  }
};

// Of grids. Their scales are below 32, of groups of 32 or 16.
template <class Format>
  requires(Format::kGrid && Format::kGroup == 32)
struct DotHeader<Format> {
  using Words = hn::FixedTag<int16_t, 8>;
  static constexpr int kVectors = 0;
  static constexpr float kAway = 0;
  static constexpr WordIndices<16, 128, 0> kIndices{};
  VU8 scales;
  float d;
  HWY_INLINE explicit DotHeader(const uint8_t* block) : d(GridBlock<Format>::D(block)) {
    alignas(16) int8_t at[16] = {};
    GridBlock<Format>::Scales(block, at);
    scales = hn::BitCast(DU8(), hn::Set(DU64(), LoadScalar<uint64_t>(reinterpret_cast<const uint8_t*>(at))));
  }
  HWY_INLINE VI16 Scales(int at) const {
    return hn::BitCast(DI16(), hn::TableLookupBytesOr0(scales, hn::Load(DU8(), kIndices.at + at)));
  }
};

template <class Format>
  requires(Format::kGrid && Format::kGroup == 16)
struct DotHeader<Format> : GroupsOf16 {
  static constexpr int kVectors = 0;
  static constexpr float kAway = 0;
  float d;
  HWY_INLINE explicit DotHeader(const uint8_t* block) : GroupsOf16(ScalesOf16(block)), d(GridBlock<Format>::D(block)) {}
  static HWY_INLINE hn::Vec<D16I> ScalesOf16(const uint8_t* block) {
    alignas(16) int8_t at[16];
    GridBlock<Format>::Scales(block, at);
    return hn::Load(D16I(), at);
  }
};

// Of one scale a block, whose products are not scaled.
template <class Format>
  requires(Format::kGroup == 256)
struct DotHeader<Format> {
  using Words = hn::FixedTag<int16_t, 8>;
  static constexpr int kVectors = 0;
  static constexpr float kAway = 0;
  float d;
  HWY_INLINE explicit DotHeader(const uint8_t* block) : d(ScaleOfBlock<Format>(block)) {}
  // Where pairs of products of more than one vector fit no words.
  HWY_INLINE static VI16 Scales(int) { return hn::Set(DI16(), 1); }
};

// sum - offset * sum(quants) for a block, whose `sums` are those of groups of 16. In integers: where most numbers are
// zero both are large, and what is left is small.
template <int kOffset>
HWY_INLINE VI32 TakeAway(VI32 sum, const int16_t* sums) {
  const DI16 d;
  const VI16 by = hn::Set(d, -kOffset);
#if HWY_MAX_BYTES == 64
  return WordDot(sum, hn::ZeroExtendVector(d, hn::LoadU(hn::Half<DI16>(), sums)), by);
#else
  QUERN_UNROLL
  for (int i = 0; i < 16; i += kBytes / 2) sum = WordDot(sum, hn::LoadU(d, sums + i), by);
  return sum;
#endif
}

// The products of pairs: of codes, or of levels with their signs.
template <class Format>
HWY_INLINE VI16 PairsOf(VU8 codes, VI8 quants) {
  if constexpr (kSignedQuants<Format>) return SignedPairDot(hn::BitCast(DI8(), codes), quants);
  return PairDot(codes, quants);
}

template <class Format, int M>
HWY_NOINLINE void DotRows(const DotCall& call) {
  using Header = DotHeader<Format>;
  using Words = typename Header::Words;
  using Wide = hn::RepartitionToWide<Words>;
  using Floats = hn::RebindToFloat<Wide>;
  constexpr bool kPairsAddUp = Format::kGroup == 256 && !kSignedQuants<Format>;
  const DF32 df;
  const Floats dx;
  const PlanarAt<256> at(call.k);
  const int64_t blocks = call.k / 256;
  for (int64_t j = 0; j < call.n; ++j) {
    const uint8_t* block = call.w + j * call.w_stride;
    VF32 acc[M];
    hn::Vec<Floats> away[M];
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) acc[r] = hn::Zero(df), away[r] = hn::Zero(dx);
    for (int64_t b = 0; b < blocks; ++b, block += Format::kBytes) {
      PrefetchAhead<Format::kBytes>(block, call.ahead);
      const Header header(block);
      VI32 sum[M];
      [[maybe_unused]] VI16 pairs[M];  // 16 times 2 products of a code below 4 fit
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) sum[r] = hn::Zero(DI32()), pairs[r] = hn::Zero(DI16());
      QUERN_UNROLL
      for (int part = 0; part < 256 / kPart<Format>; ++part) {
        VU8 codes[kPart<Format> / kBytes];
        SplitCodes<Format>(block, part, codes);
        QUERN_UNROLL
        for (int i = 0; i < kPart<Format> / kBytes; ++i) {
          const int at_byte = part * kPart<Format> + i * kBytes;
          const auto products = [&](int r) {
            const auto* quants = reinterpret_cast<const int8_t*>(call.x + r * call.x_stride) + b * 256 + at_byte;
            return PairsOf<Format>(codes[i], hn::LoadU(DI8(), quants));
          };
          if constexpr (kPairsAddUp) {
            QUERN_UNROLL
            for (int r = 0; r < M; ++r) pairs[r] = hn::Add(pairs[r], products(r));
          } else {
            const VI16 scales = header.Scales(at_byte);
            QUERN_UNROLL
            for (int r = 0; r < M; ++r) sum[r] = WordDot(sum[r], products(r), scales);
          }
        }
      }
      QUERN_UNROLL
      for (int r = 0; r < M; ++r) {
        const uint8_t* row = call.x + r * call.x_stride;
        if constexpr (kPairsAddUp) {
          const auto* sums = reinterpret_cast<const int16_t*>(row + at.sums) + b * 16;
          sum[r] = TakeAway<Format::kOffset>(AddPairs(sum[r], pairs[r]), sums);
        }
        const float xd = LoadScalar<float>(row + at.scales + b * 4), scale = header.d * xd;
        acc[r] = hn::MulAdd(hn::ConvertTo(df, sum[r]), hn::Set(df, scale), acc[r]);
        if constexpr (Header::kVectors > 0) {
          const int16_t* sums = Header::Sums(row, at, b);
          auto sum_away = MulPairs(header.away[0], hn::LoadU(Words(), sums));
          QUERN_UNROLL
          for (int i = 1; i < Header::kVectors; ++i) {
            sum_away =
                hn::Add(sum_away, MulPairs(header.away[i], hn::LoadU(Words(), sums + i * hn::MaxLanes(Words()))));
          }
          away[r] = hn::MulAdd(hn::ConvertTo(dx, sum_away), hn::Set(dx, header.AwayScale(xd, scale)), away[r]);
        }
      }
    }
    QUERN_UNROLL
    for (int r = 0; r < M; ++r) {
      call.y[r * call.y_ld + j] += SumLanes(acc[r]) - Header::kAway * hn::GetLane(hn::SumOfLanes(dx, away[r]));
    }
  }
}

template <class Format>
HWY_INLINE void Dot(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride, int64_t m,
                    int64_t n, int64_t k, int64_t ahead, int64_t many, FewTile* few) {
  if (ByPanels<Format>(m, n, many)) return few(y, y_ld, w, w_stride, x, x_stride, m, n, k, ahead);
  ForDotRows({y, y_ld, static_cast<const uint8_t*>(w), w_stride, static_cast<const uint8_t*>(x), x_stride, n, k, ahead},
             m, []<int M>(const DotCall& call) { DotRows<Format, M>(call); });
}

}  // namespace
}  // namespace quern::simd

QUERN_TILE(qk_dot_q2_K) QUERN_DOT(Q2_K, q2_K);
QUERN_TILE(qk_dot_q3_K) QUERN_DOT(Q3_K, q3_K);
QUERN_TILE(qk_dot_q4_K) QUERN_DOT(Q4_K, q4_K);
QUERN_TILE(qk_dot_q5_K) QUERN_DOT(Q5_K, q5_K);
QUERN_TILE(qk_dot_q6_K) QUERN_DOT(Q6_K, q6_K);
QUERN_TILE(qk_dot_iq4_xs) QUERN_DOT(IQ4_XS, iq4_xs);
QUERN_TILE(qk_dot_q8_K) QUERN_DOT(Q8_K, q8_K);
QUERN_TILE(qk_dot_tq1_0) QUERN_DOT(TQ1_0, tq1_0);
QUERN_TILE(qk_dot_tq2_0) QUERN_DOT(TQ2_0, tq2_0);
QUERN_TILE(qk_dot_iq2_xxs) QUERN_DOT(IQ2_XXS, iq2_xxs);
QUERN_TILE(qk_dot_iq2_xs) QUERN_DOT(IQ2_XS, iq2_xs);
QUERN_TILE(qk_dot_iq2_s) QUERN_DOT(IQ2_S, iq2_s);
QUERN_TILE(qk_dot_iq3_xxs) QUERN_DOT(IQ3_XXS, iq3_xxs);
QUERN_TILE(qk_dot_iq3_s) QUERN_DOT(IQ3_S, iq3_s);
QUERN_TILE(qk_dot_iq1_s) QUERN_DOT(IQ1_S, iq1_s);
QUERN_TILE(qk_dot_iq1_m) QUERN_DOT(IQ1_M, iq1_m);
