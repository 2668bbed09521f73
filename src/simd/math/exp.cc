// q_exp_f32, q_exp2_f32 and q_expm1_f32.
//
// The first two are 0 at -inf, inf at inf, 1 at +-0, NaN at NaN, and go through the subnormals to 0. exp2 of an integer
// is exact. expm1 is exp(x) - 1 before that is rounded: -1 at -inf, x itself at +-0 and wherever that is the nearest.
#include "simd/math/exp.h"

QUERN_INLINE(Vec, q_exp_f32)(Vec x) { return ToRaw(Exp(FromRaw(x))); }

QUERN_INLINE(Vec, q_exp2_f32)(Vec x) {
  const VF clamped = ClampKeepNan(FromRaw(x), -151.0f, 129.0f);
  const VF n = hn::Round(clamped);
  const VF r = hn::Sub(clamped, n);  // exact
  const VF p =
      Poly(r, 2.40226507e-01f, 5.55040501e-02f, 9.61808674e-03f, 1.33379723e-03f, 1.54520938e-04f, 1.43202287e-05f);
  const VF linear = hn::Mul(r, Const(6.93147182e-01f));
  return ToRaw(TimesPowerOfTwo(hn::Add(Const(1.0f), hn::MulAdd(hn::Mul(r, r), p, linear)), n));
}

// exp(x) - 1 = 2^n m + (2^n - 1) with m = exp(r) - 1, which is right to the last place however small r is. By halves,
// since 2^128 is no float.
QUERN_INLINE(Vec, q_expm1_f32)(Vec raw) {
  const VF x = FromRaw(raw);
  const VF clamped = ClampKeepNan(x, -18.0f, 89.0f);
  const Reduced reduced = Reduce(clamped, hn::Zero(kF32));
  const VF m = hn::Add(reduced.r, reduced.tail);
  const VF half = hn::BitCast(kF32, hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(kI32, reduced.n), hn::Set(kI32, 126))));
  const VF sum = hn::MulAdd(m, half, hn::Sub(half, Const(0.5f)));
  // Of the smallest x the half would be subnormal, and -0 become +0.
  return ToRaw(hn::IfThenElse(hn::Lt(hn::Abs(x), Const(2.9802322e-08f)), x, hn::Add(sum, sum)));
}
