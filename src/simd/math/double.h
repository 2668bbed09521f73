// Vectors of doubles: raw and Highway's, polynomials; and beside floats, where a register becomes two and back.
#pragma once

#include "simd/math/vector.h"

namespace {

typedef double VecF64 __attribute__((vector_size(HWY_MAX_BYTES)));
HWY_INLINE VD FromRaw(VecF64 x) { return __builtin_bit_cast(VD, x); }
HWY_INLINE VecF64 ToRaw(VD x) { return __builtin_bit_cast(VecF64, x); }
HWY_INLINE VD ConstF64(double x) { return hn::Set(kF64, x); }

using F32OfF64 = hn::Rebind<float, F64>;
constexpr F32OfF64 kF32OfF64;

struct Doubles {
  VD lower, upper;
};

HWY_INLINE Doubles ToDouble(VF x) {
  return {hn::PromoteTo(kF64, hn::LowerHalf(kF32OfF64, x)), hn::PromoteTo(kF64, hn::UpperHalf(kF32OfF64, x))};
}

HWY_INLINE VF ToFloat(Doubles x) {
  return hn::Combine(kF32, hn::DemoteTo(kF32OfF64, x.upper), hn::DemoteTo(kF32OfF64, x.lower));
}

// c0 + x (c1 + x (c2 + ...)).
template <class... Rest>
HWY_INLINE VD Poly(VD x, double c0, Rest... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return hn::Set(kF64, c0);
  } else {
    return hn::MulAdd(Poly(x, rest...), x, hn::Set(kF64, c0));
  }
}

}  // namespace
