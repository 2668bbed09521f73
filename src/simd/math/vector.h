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
using VF = hn::Vec<F32>;
using VI = hn::Vec<I32>;
using VU = hn::Vec<U32>;
using MF = hn::Mask<F32>;
inline constexpr F32 kF32;
inline constexpr I32 kI32;
inline constexpr U32 kU32;

// The types that cross a function border: plain vectors as wide as the level's registers.
typedef float Vec __attribute__((vector_size(HWY_MAX_BYTES)));
typedef int32_t VecI32 __attribute__((vector_size(HWY_MAX_BYTES)));
typedef uint32_t VecU32 __attribute__((vector_size(HWY_MAX_BYTES)));

// Highway's vector and the raw vector have one representation, so these compile to nothing.
HWY_INLINE VF FromRaw(Vec x) { return __builtin_bit_cast(VF, x); }
HWY_INLINE Vec ToRaw(VF x) { return __builtin_bit_cast(Vec, x); }

HWY_INLINE VF Const(float x) { return hn::Set(kF32, x); }

}  // namespace
