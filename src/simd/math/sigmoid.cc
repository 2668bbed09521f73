// q_sigmoid_f32: 1 / (1 + exp(-x)).
//
// Computed from exp(-|x|), which cannot overflow, so that sigmoid(-100) is the subnormal it should be and not 0.
#include "simd/math/exp.h"

QUERN_INLINE(Vec, q_sigmoid_f32)(Vec raw) {
  const VF x = FromRaw(raw);
  const VF e = Exp(hn::Neg(hn::Abs(x)));
  const VF numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(kF32)), e, Const(1.0f));
  return ToRaw(hn::Div(numerator, hn::Add(Const(1.0f), e)));
}
