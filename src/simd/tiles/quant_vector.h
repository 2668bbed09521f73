// What the quantised tiles share: integer dot products of bytes and words over Highway vectors, halves to floats.
// Everything is inline and private to the including source, as simd.h asks.
//
//   VI16 pairs = PairDot(codes, quants);      // u8 x i8, two products a lane
//   acc = WordDot(acc, pairs, scales);        // i16 x i16, two products a lane, added to i32
//   acc = AddPairs(acc, pairs);               // i16, two of them a lane, added to i32
//
// Byte dot products (PairDot) saturate at 32767: the caller keeps codes * quants small enough (quants are within
// -127..127, so 4-bit and 6-bit codes are safe) or uses ByteDot's signed form.
#pragma once

#include "simd/simd.h"

#if HWY_ARCH_X86
#include <immintrin.h>
#endif

// Before a loop over registers: arrays of vectors stay in registers only when every index is a constant.
#define QUERN_UNROLL _Pragma("clang loop unroll(full)")

namespace quern::simd {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using DU8 = hn::ScalableTag<uint8_t>;
using DI8 = hn::ScalableTag<int8_t>;
using DI16 = hn::ScalableTag<int16_t>;
using DI32 = hn::ScalableTag<int32_t>;
using DU32 = hn::ScalableTag<uint32_t>;
using DU64 = hn::ScalableTag<uint64_t>;
using DF32 = hn::ScalableTag<float>;
using VU8 = hn::Vec<DU8>;
using VI8 = hn::Vec<DI8>;
using VI16 = hn::Vec<DI16>;
using VI32 = hn::Vec<DI32>;
using VF32 = hn::Vec<DF32>;

// Bytes and 32-bit lanes of a vector.
constexpr int kBytes = HWY_MAX_BYTES;
constexpr int kLanes = HWY_MAX_BYTES / 4;

// Whether byte dot products accumulate into i32 in one exact instruction (vpdpbusd).
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
constexpr bool kByteDot = true;
#else
constexpr bool kByteDot = false;
#endif
// Whether panels of blocks of 256 have the scales of their groups as words, which pairs of products are multiplied by
// where they are added up in pairs anyway. Where one instruction adds up products of bytes it leaves nothing to scale.
#if HWY_ARCH_X86
constexpr bool kWordScales = !kByteDot;
#else
constexpr bool kWordScales = false;
#endif
// Registers decide how many rows a tile takes at once.
constexpr int kRegisters = HWY_MAX_BYTES == 64 ? 32 : 16;

template <typename T>
HWY_INLINE T LoadScalar(const void* at) {
  T value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}
template <typename T>
HWY_INLINE void StoreScalar(T value, void* at) {
  __builtin_memcpy(at, &value, sizeof value);
}

HWY_INLINE int64_t RoundUp64(int64_t value) { return (value + 63) & ~int64_t{63}; }

// f16 to f32, exact.
HWY_INLINE float HalfToFloat(uint16_t half) {
#if defined(__F16C__)
  return _cvtsh_ss(half);
#elif HWY_ARCH_ARM_A64
  return static_cast<float>(__builtin_bit_cast(_Float16, half));
#else
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 31, mantissa = half & 1023;
  if (exponent == 31) return __builtin_bit_cast(float, sign | 0x7f800000 | mantissa << 13);
  if (exponent != 0) return __builtin_bit_cast(float, sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return __builtin_bit_cast(float, sign | __builtin_bit_cast(uint32_t, magnitude));
#endif
}

// f32 to f16 and back: rounds to nearest even as a stored half does.
HWY_INLINE float RoundToHalf(float value) {
#if defined(__F16C__)
  return _cvtsh_ss(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT));
#elif HWY_ARCH_ARM_A64
  return static_cast<float>(static_cast<_Float16>(value));
#else
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t sign = bits & 0x80000000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return value;
  if (magnitude >= 0x477ff000) return __builtin_bit_cast(float, sign | 0x7f800000);
  uint32_t rounded;
  if (magnitude < 0x38800000) {
    // Subnormal half: adding and taking away 0.5 leaves a multiple of 2^-24.
    rounded = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, magnitude) + 0.5f - 0.5f);
  } else {
    rounded = (magnitude + 0xfff + (magnitude >> 13 & 1)) & ~uint32_t{0x1fff};
  }
  return __builtin_bit_cast(float, sign | rounded);
#endif
}

#if HWY_ARCH_ARM_A64
// i16 lanes: a[2i] * b[2i] + a[2i+1] * b[2i+1], exact for b within -127..127.
HWY_INLINE VI16 MulPairs(VI8 a, VI8 b) {
  return VI16{vpaddq_s16(vmull_s8(vget_low_s8(a.raw), vget_low_s8(b.raw)), vmull_high_s8(a.raw, b.raw))};
}
#endif

// i16 lanes: u[2i] * s[2i] + u[2i+1] * s[2i+1], saturating; on ARM for u within 0..127 alone.
HWY_INLINE VI16 PairDot(VU8 u, VI8 s) {
#if HWY_ARCH_X86 && HWY_MAX_BYTES == 64
  return VI16{_mm512_maddubs_epi16(u.raw, s.raw)};
#elif HWY_ARCH_X86 && HWY_MAX_BYTES == 32
  return VI16{_mm256_maddubs_epi16(u.raw, s.raw)};
#elif HWY_ARCH_X86
  return VI16{_mm_maddubs_epi16(u.raw, s.raw)};
#elif HWY_ARCH_ARM_A64
  return MulPairs(hn::BitCast(DI8(), u), s);
#else
  const DI16 d;
  const VI16 words = hn::BitCast(d, u), quants = hn::BitCast(d, s);
  const VI16 even = hn::Mul(hn::And(words, hn::Set(d, 255)), hn::ShiftRight<8>(hn::ShiftLeft<8>(quants)));
  const VI16 odd = hn::Mul(hn::BitCast(d, hn::ShiftRight<8>(hn::BitCast(hn::ScalableTag<uint16_t>(), words))),
                           hn::ShiftRight<8>(quants));
  return hn::SaturatedAdd(even, odd);
#endif
}

// i32 lanes: a[2i] * b[2i] + a[2i+1] * b[2i+1], for vectors of any width.
#if HWY_ARCH_X86
HWY_INLINE hn::Vec128<int32_t> MulPairs(hn::Vec128<int16_t> a, hn::Vec128<int16_t> b) {
  return hn::Vec128<int32_t>{_mm_madd_epi16(a.raw, b.raw)};
}
#if HWY_MAX_BYTES >= 32
HWY_INLINE hn::Vec256<int32_t> MulPairs(hn::Vec256<int16_t> a, hn::Vec256<int16_t> b) {
  return hn::Vec256<int32_t>{_mm256_madd_epi16(a.raw, b.raw)};
}
#endif
#if HWY_MAX_BYTES >= 64
HWY_INLINE hn::Vec512<int32_t> MulPairs(hn::Vec512<int16_t> a, hn::Vec512<int16_t> b) {
  return hn::Vec512<int32_t>{_mm512_madd_epi16(a.raw, b.raw)};
}
#endif
#elif HWY_ARCH_ARM_A64
HWY_INLINE VI32 MulPairs(VI16 a, VI16 b) {
  return VI32{vpaddq_s32(vmull_s16(vget_low_s16(a.raw), vget_low_s16(b.raw)), vmull_high_s16(a.raw, b.raw))};
}
#else
template <class V16>
HWY_INLINE auto MulPairs(V16 a, V16 b) {
  const hn::RepartitionToWide<hn::DFromV<V16> > d;
  const auto a32 = hn::BitCast(d, a), b32 = hn::BitCast(d, b);
  const auto low = hn::Mul(hn::ShiftRight<16>(hn::ShiftLeft<16>(a32)), hn::ShiftRight<16>(hn::ShiftLeft<16>(b32)));
  return hn::Add(low, hn::Mul(hn::ShiftRight<16>(a32), hn::ShiftRight<16>(b32)));
}
#endif

// acc + MulPairs(a, b).
HWY_INLINE VI32 WordDot(VI32 acc, VI16 a, VI16 b) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
  return VI32{_mm512_dpwssd_epi32(acc.raw, a.raw, b.raw)};
#else
  return hn::Add(acc, MulPairs(a, b));
#endif
}

// acc + a[2i] + a[2i+1].
HWY_INLINE VI32 AddPairs(VI32 acc, VI16 a) {
#if HWY_ARCH_ARM_A64
  return VI32{vpadalq_s16(acc.raw, a.raw)};
#else
  return WordDot(acc, a, hn::Set(DI16(), 1));
#endif
}

// acc + four products of bytes a lane, exact for any codes. Only where kByteDot.
HWY_INLINE VI32 ByteDot(VI32 acc, VU8 u, VI8 s) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
  return VI32{_mm512_dpbusd_epi32(acc.raw, u.raw, s.raw)};
#else
  return AddPairs(acc, PairDot(u, s));
#endif
}

// i16 lanes: w[2i] * x[2i] + w[2i+1] * x[2i+1], exact for x within -127..127: the sign of w goes to x, since the
// instruction wants one side unsigned.
HWY_INLINE VI16 SignedPairDot(VI8 w, VI8 x) {
#if HWY_ARCH_X86 && HWY_MAX_BYTES == 64
  const __m512i turned = _mm512_mask_sub_epi8(x.raw, _mm512_movepi8_mask(w.raw), _mm512_setzero_si512(), x.raw);
  return PairDot(VU8{_mm512_abs_epi8(w.raw)}, VI8{turned});
#elif HWY_ARCH_X86 && HWY_MAX_BYTES == 32
  return PairDot(VU8{_mm256_abs_epi8(w.raw)}, VI8{_mm256_sign_epi8(x.raw, w.raw)});
#elif HWY_ARCH_X86
  return PairDot(VU8{_mm_abs_epi8(w.raw)}, VI8{_mm_sign_epi8(x.raw, w.raw)});
#elif HWY_ARCH_ARM_A64
  return MulPairs(w, x);
#else
  const VI8 turned = hn::IfThenElse(hn::Lt(w, hn::Zero(DI8())), hn::Neg(x), x);
  return PairDot(hn::BitCast(DU8(), hn::Abs(w)), turned);
#endif
}

// Calls f.operator()<m>() for the m in 1..kMax that is wanted: rows as a constant, so that they stay in registers.
template <int kMax, class F>
HWY_INLINE void DispatchRows(int64_t m, const F& f) {
  if constexpr (kMax == 1) {
    f.template operator()<1>();
  } else if (m == kMax) {
    f.template operator()<kMax>();
  } else {
    DispatchRows<kMax - 1>(m, f);
  }
}

HWY_INLINE float SumLanes(VF32 v) { return hn::GetLane(hn::SumOfLanes(DF32(), v)); }

// The eight scales and eight minimums of a q4_K or q5_K block, six bits packed in 12 bytes, as bytes in two words.
struct SixBits {
  uint64_t scales, mins;
};
HWY_INLINE SixBits UnpackSixBits(const uint8_t* packed) {
  const uint32_t a = LoadScalar<uint32_t>(packed), b = LoadScalar<uint32_t>(packed + 4);
  const uint32_t c = LoadScalar<uint32_t>(packed + 8);
  const uint32_t scales_high = (c & 0x0f0f0f0f) | (a >> 2 & 0x30303030);
  const uint32_t mins_high = (c >> 4 & 0x0f0f0f0f) | (b >> 2 & 0x30303030);
  return {(a & 0x3f3f3f3f) | static_cast<uint64_t>(scales_high) << 32,
          (b & 0x3f3f3f3f) | static_cast<uint64_t>(mins_high) << 32};
}

// Indices for TableLookupBytesOr0 over bytes repeated in every 128-bit block: i16 lane i of the result is byte i /
// kEach in its low (0) or high (1) byte, and zero in the other.
template <int kEach, int kCount, int kByte>
struct WordIndices {
  alignas(64) uint8_t at[kCount * 2];
  constexpr WordIndices() : at() {
    for (int i = 0; i < kCount; ++i) {
      at[2 * i + kByte] = static_cast<uint8_t>(i / kEach);
      at[2 * i + 1 - kByte] = 0x80;
    }
  }
};

}  // namespace
}  // namespace quern::simd
