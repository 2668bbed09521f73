// qk_pack_q8_0_planar, qk_pack_q8_K_planar: f32 rows to quantised activations, bit for bit ggml's reference encoders
// (src/kir/quantise.h states them). They run once for every row that a quantised weight multiplies.
//
//   q8_0  d = max|x| / 127;  quants = round half away (x * (1 / d));  the row keeps d rounded to f16
//   q8_K  s = -127 / (the x of largest magnitude);  quants = min(127, round half even (s * x));  the row keeps 1 / s
#include "simd/tiles/quant_layout.h"
#include "simd/tiles/quant_vector.h"

namespace quern::simd {
namespace {

// Float to i32. Values beyond i32 do not occur but for NaN and infinities, whose quants are unspecified.
HWY_INLINE VI32 RoundEven(VF32 v) {
#if HWY_ARCH_X86 && HWY_MAX_BYTES == 64
  return VI32{_mm512_cvtps_epi32(v.raw)};
#elif HWY_ARCH_X86 && HWY_MAX_BYTES == 32
  return VI32{_mm256_cvtps_epi32(v.raw)};
#elif HWY_ARCH_X86
  return VI32{_mm_cvtps_epi32(v.raw)};
#else
  return hn::NearestInt(v);
#endif
}

HWY_INLINE VI32 Truncate(VF32 v) {
#if HWY_ARCH_X86 && HWY_MAX_BYTES == 64
  return VI32{_mm512_cvttps_epi32(v.raw)};
#elif HWY_ARCH_X86 && HWY_MAX_BYTES == 32
  return VI32{_mm256_cvttps_epi32(v.raw)};
#elif HWY_ARCH_X86
  return VI32{_mm_cvttps_epi32(v.raw)};
#else
  return hn::ConvertTo(DI32(), v);
#endif
}

// Half away from zero: the largest float below one half cannot carry a value below the tie over it, unlike 0.5 itself.
HWY_INLINE VI32 RoundAway(VF32 v) {
  const DF32 d;
  return Truncate(hn::Add(v, hn::CopySignToAbs(hn::Set(d, 0x1.fffffep-2f), v)));
}

// Four vectors of i32 to one of i8, saturating, in order.
HWY_INLINE VI8 Narrow(VI32 a, VI32 b, VI32 c, VI32 d) {
#if HWY_ARCH_X86 && HWY_MAX_BYTES == 64
  const __m512i packed = _mm512_packs_epi16(_mm512_packs_epi32(a.raw, b.raw), _mm512_packs_epi32(c.raw, d.raw));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return VI8{_mm512_permutexvar_epi32(order, packed)};
#elif HWY_ARCH_X86 && HWY_MAX_BYTES == 32
  const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(a.raw, b.raw), _mm256_packs_epi32(c.raw, d.raw));
  return VI8{_mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))};
#elif HWY_ARCH_X86
  return VI8{_mm_packs_epi16(_mm_packs_epi32(a.raw, b.raw), _mm_packs_epi32(c.raw, d.raw))};
#else
  const hn::Rebind<int8_t, DI32> quarter;
  const hn::Half<DI8> half;
  return hn::Combine(DI8(), hn::Combine(half, hn::DemoteTo(quarter, d), hn::DemoteTo(quarter, c)),
                     hn::Combine(half, hn::DemoteTo(quarter, b), hn::DemoteTo(quarter, a)));
#endif
}

// Sums of 16 and of 32 of 256 quants.
HWY_INLINE void StoreSums(const VI8* quants, int16_t* sums, int16_t* wide_sums) {
#if HWY_ARCH_X86 && HWY_MAX_BYTES == 64
  __m512i eights[4];  // each 128-bit block: two sums of eight biased quants, which are one group of 16
  for (int i = 0; i < 4; ++i) {
    eights[i] = _mm512_sad_epu8(_mm512_xor_si512(quants[i].raw, _mm512_set1_epi8(-128)), _mm512_setzero_si512());
  }
  const auto add_halves = [](__m512i a, __m512i b) {
    return _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
  };
  // Block i of the packed words: group i of each of the four vectors, in the low word of four lanes.
  const __m512i packed = _mm512_packs_epi32(add_halves(eights[0], eights[1]), add_halves(eights[2], eights[3]));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i groups = _mm512_sub_epi32(_mm512_permutexvar_epi32(order, packed), _mm512_set1_epi32(128 * 16));
  const __m256i words = _mm512_cvtepi32_epi16(groups);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums), words);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(wide_sums),
                   _mm256_cvtepi32_epi16(_mm256_madd_epi16(words, _mm256_set1_epi16(1))));
#else
  const DU8 d;
  alignas(64) uint64_t eights[32];  // sums of eight biased quants
  for (int i = 0; i < 256 / kBytes; ++i) {
    const VU8 biased = hn::Xor(hn::BitCast(d, quants[i]), hn::Set(d, 0x80));
    hn::Store(hn::SumsOf8(biased), DU64(), eights + i * (kBytes / 8));
  }
  for (int g = 0; g < 8; ++g) {
    const int low = static_cast<int>(eights[4 * g] + eights[4 * g + 1]) - 128 * 16;
    const int high = static_cast<int>(eights[4 * g + 2] + eights[4 * g + 3]) - 128 * 16;
    sums[2 * g] = static_cast<int16_t>(low);
    sums[2 * g + 1] = static_cast<int16_t>(high);
    wide_sums[g] = static_cast<int16_t>(low + high);
  }
#endif
}

// The element of largest magnitude of 256, the first of equals; 0 if all are 0 or NaN.
HWY_INLINE float Extreme256(const float* x) {
  const DF32 d;
  VF32 high[2] = {hn::Zero(d), hn::Zero(d)}, low[2] = {hn::Zero(d), hn::Zero(d)};
  for (int i = 0; i < 256 / kLanes; ++i) {
    const VF32 v = hn::LoadU(d, x + i * kLanes);
    high[i % 2] = hn::Max(v, high[i % 2]);  // a NaN is ignored: the second operand wins
    low[i % 2] = hn::Min(v, low[i % 2]);
  }
  const float top = hn::GetLane(hn::MaxOfLanes(d, hn::Max(high[0], high[1])));
  const float bottom = hn::GetLane(hn::MinOfLanes(d, hn::Min(low[0], low[1])));
  if (top != -bottom) return top > -bottom ? top : bottom;
  if (top == 0) return 0;
  for (int i = 0; i < 256; ++i) {
    if (x[i] == top || x[i] == bottom) return x[i];
  }
  return 0;
}

HWY_INLINE void QuantiseQ8_K(const float* x, int8_t* quants, uint8_t* scale, int16_t* sums, int16_t* wide_sums) {
  const DF32 d;
  const float extreme = Extreme256(x);
  const float multiplier = extreme == 0 ? 0 : -127.0f / extreme;
  const VF32 by = hn::Set(d, multiplier);
  VI8 packed[256 / kBytes];
  for (int i = 0; i < 256 / kBytes; ++i) {
    VI32 rounded[4];
    for (int v = 0; v < 4; ++v) {
      rounded[v] = RoundEven(hn::Mul(hn::LoadU(d, x + i * kBytes + v * kLanes), by));
    }
    packed[i] = Narrow(rounded[0], rounded[1], rounded[2], rounded[3]);
    hn::StoreU(packed[i], DI8(), quants + i * kBytes);
  }
  StoreSums(packed, sums, wide_sums);
  StoreScalar(extreme == 0 ? 0.0f : 1 / multiplier, scale);
}

HWY_INLINE void QuantiseQ8_0(const float* x, int8_t* quants, uint8_t* scale, int16_t* sum) {
  const DF32 d;
  VF32 largest = hn::Zero(d);
  for (int i = 0; i < 32 / kLanes; ++i) largest = hn::Max(hn::Abs(hn::LoadU(d, x + i * kLanes)), largest);
  const float step = hn::GetLane(hn::MaxOfLanes(d, largest)) / 127.0f;
  const VF32 by = hn::Set(d, step != 0 ? 1 / step : 0.0f);
  VI32 rounded[32 / kLanes];
  for (int i = 0; i < 32 / kLanes; ++i) rounded[i] = RoundAway(hn::Mul(hn::LoadU(d, x + i * kLanes), by));
#if HWY_MAX_BYTES == 64
  const VI8 packed = Narrow(rounded[0], rounded[1], rounded[0], rounded[1]);
  const hn::FixedTag<int8_t, 32> half;
  hn::StoreU(hn::LowerHalf(half, packed), half, quants);
#else
  for (int i = 0; i < 32 / kBytes; ++i) {
    const VI32* four = rounded + i * 4;
    hn::StoreU(Narrow(four[0], four[1], four[2], four[3]), DI8(), quants + i * kBytes);
  }
#endif
  VI32 sums = rounded[0];
  for (int i = 1; i < 32 / kLanes; ++i) sums = hn::Add(sums, rounded[i]);
  *sum = static_cast<int16_t>(hn::GetLane(hn::SumOfLanes(DI32(), sums)));
  StoreScalar(RoundToHalf(step), scale);
}

#if HWY_ARCH_X86 && HWY_MAX_BYTES == 64
// Four blocks at once: the maxima of four blocks reduce in the steps of one, and two narrow divisions serve all.
HWY_INLINE void QuantiseFourQ8_0(const float* x, int8_t* quants, uint8_t* scales, uint8_t* sums) {
  __m512 v[8], largest[4];
  QUERN_UNROLL
  for (int i = 0; i < 8; ++i) v[i] = _mm512_loadu_ps(x + i * 16);
  const __m512 zero = _mm512_setzero_ps();
  QUERN_UNROLL
  for (int i = 0; i < 4; ++i) {  // a NaN is ignored: the second operand wins
    largest[i] = _mm512_max_ps(_mm512_abs_ps(v[2 * i + 1]), _mm512_max_ps(_mm512_abs_ps(v[2 * i]), zero));
  }
  const auto fold = [](__m512 a, __m512 b) {
    return _mm512_max_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  };
  // 128-bit block i: four candidates of block i.
  __m512 most = fold(fold(largest[0], largest[1]), fold(largest[2], largest[3]));
  most = _mm512_max_ps(most, _mm512_permute_ps(most, 0x4e));
  most = _mm512_max_ps(most, _mm512_permute_ps(most, 0xb1));
  const __m512i firsts = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
  const __m128 step = _mm_div_ps(_mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, most)), _mm_set1_ps(127));
  const __mmask8 some = _mm_cmp_ps_mask(step, _mm_setzero_ps(), _CMP_NEQ_UQ);
  const __m512 inverse = _mm512_zextps128_ps512(_mm_maskz_div_ps(some, _mm_set1_ps(1), step));
  _mm_storeu_ps(reinterpret_cast<float*>(scales), _mm_cvtph_ps(_mm_cvtps_ph(step, _MM_FROUND_TO_NEAREST_INT)));
  VI32 rounded[8];
  QUERN_UNROLL
  for (int i = 0; i < 8; ++i) {
    const VF32 by{_mm512_permutexvar_ps(_mm512_set1_epi32(i / 2), inverse)};
    rounded[i] = RoundAway(hn::Mul(VF32{v[i]}, by));
  }
  __m512i eights[2];
  QUERN_UNROLL
  for (int i = 0; i < 2; ++i) {
    const VI8 packed = Narrow(rounded[4 * i], rounded[4 * i + 1], rounded[4 * i + 2], rounded[4 * i + 3]);
    hn::StoreU(packed, DI8(), quants + i * 64);
    eights[i] = _mm512_sad_epu8(_mm512_xor_si512(packed.raw, _mm512_set1_epi8(-128)), _mm512_setzero_si512());
  }
  const __m512i halves =
      _mm512_add_epi64(_mm512_unpacklo_epi64(eights[0], eights[1]), _mm512_unpackhi_epi64(eights[0], eights[1]));
  const __m512i sum = _mm512_add_epi64(halves, _mm512_shuffle_i64x2(halves, halves, 0xb1));
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 0, 4, 1, 5);  // lanes: blocks 0, 2 and, a half further, 1, 3
  const __m512i blocks = _mm512_sub_epi64(_mm512_permutexvar_epi64(order, sum), _mm512_set1_epi64(128 * 32));
  StoreScalar(_mm_cvtsi128_si64(_mm512_cvtepi64_epi16(blocks)), sums);
}
#endif

}  // namespace
}  // namespace quern::simd

QUERN_TILE(qk_pack_q8_0_planar)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows,
                                int64_t k, int64_t row_k, int64_t start) {
  using namespace quern::simd;
  const PlanarAt<32> at(row_k);
  for (int64_t r = 0; r < rows; ++r) {
    const auto* x = reinterpret_cast<const float*>(static_cast<const uint8_t*>(src) + r * src_stride);
    uint8_t* row = static_cast<uint8_t*>(dst) + r * dst_stride;
    int64_t j = 0;
#if HWY_ARCH_X86 && HWY_MAX_BYTES == 64
    for (; j + 128 <= k; j += 128) {
      const int64_t to = start + j;
      QuantiseFourQ8_0(x + j, reinterpret_cast<int8_t*>(row + to), row + at.scales + to / 8, row + at.sums + to / 16);
    }
#endif
    for (; j < k; j += 32) {
      const int64_t to = start + j;
      QuantiseQ8_0(x + j, reinterpret_cast<int8_t*>(row + to), row + at.scales + to / 8,
                   reinterpret_cast<int16_t*>(row + at.sums + to / 16));
    }
  }
}

QUERN_TILE(qk_pack_q8_K_planar)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows,
                                int64_t k, int64_t row_k, int64_t start) {
  using namespace quern::simd;
  const PlanarAt<256> at(row_k);
  for (int64_t r = 0; r < rows; ++r) {
    const auto* x = reinterpret_cast<const float*>(static_cast<const uint8_t*>(src) + r * src_stride);
    uint8_t* row = static_cast<uint8_t*>(dst) + r * dst_stride;
    for (int64_t j = 0; j < k; j += 256) {
      const int64_t to = start + j;
      QuantiseQ8_K(x + j, reinterpret_cast<int8_t*>(row + to), row + at.scales + to / 256 * 4,
                   reinterpret_cast<int16_t*>(row + at.sums + to / 8),
                   reinterpret_cast<int16_t*>(row + at.wide_sums + to / 16));
    }
  }
}
