// q_sigmoid_f32: 1 / (1 + exp(-x)).
//
// Computed from e = exp(-|x|), which cannot overflow, so that sigmoid(-100) is the subnormal it should be and not 0.
// What rounding takes from 1 + e is put back after the division.
#include "simd/math/exp.h"

QUERN_INLINE(Vec, q_sigmoid_f32)(Vec raw) {
  const VF x = FromRaw(raw);
  const VF e = Exp(hn::Neg(hn::Abs(x)));
  const VF one = Const(1.0f);
  const MF negative = hn::Lt(x, hn::Zero(kF32));
  const VF sum = hn::Add(one, e);
  const VF lost = hn::Sub(e, hn::Sub(sum, one));
  const VF quotient = hn::Div(hn::IfThenElse(negative, e, one), sum);
  const VF reciprocal = hn::IfThenElse(negative, hn::Sub(one, quotient), quotient);  // 1 / sum, near enough
  return ToRaw(hn::NegMulAdd(hn::Mul(quotient, reciprocal), lost, quotient));
}
