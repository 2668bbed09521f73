// q_exp_f32, q_exp2_f32 and q_expm1_f32, q_exp_f64, q_exp2_f64 and q_expm1_f64.
//
// exp and exp2 are 0 at -inf, inf at inf, 1 at +-0, NaN at NaN, and go through the subnormals to 0. exp2 of an integer
// is exact. expm1 is exp(x) - 1 before that is rounded: -1 at -inf, x itself at +-0 and wherever that is the nearest.
#include "simd/math/exp.h"
#include "simd/math/exp_f64.h"

QUERN_INLINE(Vec, q_exp_f32)(Vec x) { return ToRaw(Exp(FromRaw(x))); }

QUERN_INLINE(Vec, q_exp2_f32)(Vec x) { return ToRaw(Exp2(FromRaw(x))); }

// By halves, since 2^128 is no float.
QUERN_INLINE(Vec, q_expm1_f32)(Vec raw) {
  const VF x = FromRaw(raw);
  const Power power = SplitExp(AtMost(89.0f, AtLeast(-18.0f, x)));
  const VF sum = hn::MulAdd(power.rest, power.half, hn::Sub(power.half, Const(0.5f)));
  // Of the smallest x the half would be subnormal, and -0 become +0.
  return ToRaw(hn::IfThenElse(hn::Lt(hn::Abs(x), Const(2.9802322e-08f)), x, hn::Add(sum, sum)));
}

QUERN_INLINE(VecF64, q_exp_f64)(VecF64 x) { return ToRaw(Exp(FromRaw(x))); }

QUERN_INLINE(VecF64, q_exp2_f64)(VecF64 x) { return ToRaw(Exp2(FromRaw(x))); }

QUERN_INLINE(VecF64, q_expm1_f64)(VecF64 raw) {
  const VD x = FromRaw(raw);
  const PowerF64 e = SplitExp(Clamp(x, -40, 710));
  const VD half = PowerOfTwo(hn::Sub(e.n, ConstF64(1)));
  const VD sum = hn::MulAdd(e.rest, half, hn::Sub(half, ConstF64(0.5)));
  return ToRaw(hn::IfThenElse(hn::Lt(hn::Abs(x), ConstF64(0x1p-54)), x, hn::Add(sum, sum)));
}
