// q_exp_f32 and q_exp2_f32.
//
// Both are 0 at -inf, inf at inf, 1 at +-0, NaN at NaN, and go through the subnormals to 0. exp2 of an integer is
// exact.
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
