// q_erf_f32: an odd polynomial up to 1, then 1 - exp(-q(|x|)) with a polynomial q. erf(+-0) = +-0, erf(+-inf) = +-1.
#include "simd/math/exp.h"

QUERN_INLINE(Vec, q_erf_f32)(Vec raw) {
  const VF x = FromRaw(raw);
  const VF magnitude = hn::Abs(x);
  const VF s = hn::Mul(x, x);
  const VF p = Poly(s, 1.28379166e-01f, -3.76126260e-01f, 1.12835787e-01f, -2.68533472e-02f, 5.18716220e-03f,
                    -7.99785310e-04f, 7.80690389e-05f);
  const VF near_zero = hn::MulAdd(p, magnitude, magnitude);
  // Beyond 4 the result is 1 in single precision; the polynomial must not see more.
  const VF t = hn::IfThenElse(hn::Gt(magnitude, Const(4.0f)), Const(4.0f), magnitude);
  const VF q = Poly(t, -2.02064577e-04f, 1.12964940e+00f, 6.33065462e-01f, 1.08607151e-01f, -2.53495239e-02f,
                    4.27101413e-03f, -4.60496580e-04f, 2.47816279e-05f, -2.14322711e-07f);
  const VF far = hn::Sub(Const(1.0f), ExpInRange(hn::Neg(q), hn::Zero(kF32)));
  return ToRaw(hn::CopySign(hn::IfThenElse(hn::Lt(magnitude, Const(1.0f)), near_zero, far), x));
}
