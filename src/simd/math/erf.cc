// q_erf_f32: an odd polynomial up to 1, then 1 - exp(-q) with a polynomial q. erf(+-0) = +-0, erf(+-inf) = +-1.
#include "simd/math/exp.h"

QUERN_INLINE(Vec, q_erf_f32)(Vec raw) {
  const VF x = FromRaw(raw);
  const VF magnitude = hn::Abs(x);
  // In powers of x x - 1/2, whose terms stay small up to |x| = 1, where their rounding counts most.
  const VF shifted = hn::Sub(hn::Mul(x, x), Const(0.5f));
  const VF p = Poly(shifted, -3.45312618e-02f, -2.81072199e-01f, 7.94100314e-02f, -1.82832759e-02f, 3.47970054e-03f,
                    -5.65641094e-04f, 8.01595888e-05f);
  const VF near_zero = hn::MulAdd(p, magnitude, magnitude);
  // Beyond 4 the result is 1 in single precision; the polynomial must not see more.
  const VF t = hn::IfThenElse(hn::Gt(magnitude, Const(4.0f)), Const(4.0f), magnitude);
  // In powers of |x| - 1, since an error of the exponent counts most there. The first coefficient has a low part.
  const VF q = Poly(hn::Sub(t, Const(1.0f)), 1.84960556f, 2.63896751e+00f, 8.43107164e-01f, 4.15627509e-02f,
                    -1.00439461e-02f, 2.00778479e-03f, -2.85936723e-04f, 2.01703588e-05f, 2.47777109e-07f);
  const VF far = hn::Sub(Const(1.0f), ExpInRange(hn::Neg(q), Const(5.03694861e-08f)));
  return ToRaw(hn::CopySign(hn::IfThenElse(hn::Lt(magnitude, Const(1.0f)), near_zero, far), x));
}
