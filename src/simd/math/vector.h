// Vocabulary of the math sources: raw vectors at the border, Highway vectors inside.
//
// Everything sits in an anonymous namespace, since each level must have its own copy (see simd.h).
#pragma once

#include "simd/simd.h"

namespace {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U32 = hn::RebindToUnsigned<F32>;
using F64 = hn::ScalableTag<double>;
using U64 = hn::RebindToUnsigned<F64>;
using VF = hn::Vec<F32>;
using VI = hn::Vec<I32>;
using VU = hn::Vec<U32>;
using VD = hn::Vec<F64>;
using MF = hn::Mask<F32>;
constexpr F32 kF32;
constexpr I32 kI32;
constexpr U32 kU32;
constexpr F64 kF64;
constexpr U64 kU64;

// The types that cross a function border: plain vectors as wide as the level's registers.
typedef float Vec __attribute__((vector_size(HWY_MAX_BYTES)));
typedef uint32_t VecU32 __attribute__((vector_size(HWY_MAX_BYTES)));

// Highway's vector and the raw vector have one representation, so these compile to nothing.
HWY_INLINE VF FromRaw(Vec x) { return __builtin_bit_cast(VF, x); }
HWY_INLINE VU FromRaw(VecU32 x) { return __builtin_bit_cast(VU, x); }
HWY_INLINE Vec ToRaw(VF x) { return __builtin_bit_cast(Vec, x); }
HWY_INLINE VecU32 ToRaw(VU x) { return __builtin_bit_cast(VecU32, x); }

HWY_INLINE VF Const(float x) { return hn::Set(kF32, x); }
HWY_INLINE VF Infinity() { return hn::BitCast(kF32, hn::Set(kU32, 0x7f800000u)); }
HWY_INLINE VF QuietNan() { return hn::BitCast(kF32, hn::Set(kU32, 0x7fc00000u)); }

// The lesser or greater of a number and x; NaN where x is, since x86 gives the second operand of two that do not
// compare, and Arm the NaN.
HWY_INLINE VF AtMost(float most, VF x) { return hn::Min(Const(most), x); }
HWY_INLINE VF AtLeast(float least, VF x) { return hn::Max(Const(least), x); }

#if HWY_TARGET <= HWY_AVX3
// table[index], of which the low four bits count: a register, read by lanes.
HWY_INLINE VF LookUp(const float (&table)[16], VI index) {
  return VF{_mm512_permutexvar_ps(index.raw, _mm512_load_ps(table))};
}
HWY_INLINE VI LookUp(const int32_t (&table)[16], VI index) {
  return VI{_mm512_permutexvar_epi32(index.raw, _mm512_load_si512(table))};
}
#endif

// c0 + x (c1 + x (c2 + ...)), by Horner's rule. Coefficients come from tools/fit_math.py.
template <class... Rest>
HWY_INLINE VF Poly(VF x, float c0, Rest... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return Const(c0);
  } else {
    return hn::MulAdd(Poly(x, rest...), x, Const(c0));
  }
}

// The same with its terms in pairs (Estrin's scheme): of a long one about half the latency, for a few multiplications.
template <int kCount>
HWY_INLINE VF PolyOfTerms(VF x, const VF (&c)[kCount]) {
  if constexpr (kCount == 1) {
    return c[0];
  } else {
    constexpr int kPairs = kCount / 2;
    VF pairs[kPairs + kCount % 2];
#pragma clang loop unroll(full)
    for (int i = 0; i < kPairs; ++i) pairs[i] = hn::MulAdd(c[2 * i + 1], x, c[2 * i]);
    if constexpr (kCount % 2 == 1) pairs[kPairs] = c[kCount - 1];
    return PolyOfTerms(hn::Mul(x, x), pairs);
  }
}
template <class... Coefficients>
HWY_INLINE VF PolyByPairs(VF x, Coefficients... c) {
  const VF terms[] = {Const(c)...};
  return PolyOfTerms(x, terms);
}

// ln 2 in two parts: the first has 14 bits, so its product with an exponent is exact without fused multiply-add.
constexpr float kLn2Hi = 0.69317626953125f;
constexpr float kLn2Lo = -2.9088971304690583e-05f;

}  // namespace
