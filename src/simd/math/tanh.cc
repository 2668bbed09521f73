// q_tanh_f32: an odd polynomial near 0, elsewhere 1 - 2 / (exp(2|x|) + 1). tanh(+-0) = +-0, tanh(+-inf) = +-1.
#include "simd/math/exp.h"

QUERN_INLINE(Vec, q_tanh_f32)(Vec raw) {
  const VF x = FromRaw(raw);
  const VF magnitude = hn::Abs(x);
  const VF s = hn::Mul(x, x);
  const VF p =
      Poly(s, -3.33333164e-01f, 1.33327201e-01f, -5.38945347e-02f, 2.14577932e-02f, -7.66581250e-03f, 1.74175669e-03f);
  const VF near_zero = hn::MulAdd(hn::Mul(s, p), magnitude, magnitude);
  const VF e = Exp(hn::Add(magnitude, magnitude));
  const VF far = hn::Sub(Const(1.0f), hn::Div(Const(2.0f), hn::Add(e, Const(1.0f))));
  return ToRaw(hn::CopySign(hn::IfThenElse(hn::Lt(magnitude, Const(0.75f)), near_zero, far), x));
}
