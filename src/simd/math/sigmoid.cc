// q_sigmoid_f32 and q_sigmoid_f64: 1 / (1 + exp(-x)).
//
// Computed from e = exp(-|x|), which cannot overflow, so that sigmoid(-100) is the subnormal it should be and not 0.
#include "simd/math/exp.h"
#include "simd/math/exp_f64.h"

namespace {

// n / (1 + e).
HWY_INLINE VF Quotient(VF n, VF e) {
  const VF sum = hn::Add(Const(1.0f), e);
#if HWY_TARGET <= HWY_AVX3
  // By an estimate of 14 bits and what it lacks, for which the denominator need not be a float.
  const VF reciprocal = hn::ApproximateReciprocal(sum), quotient = hn::Mul(n, reciprocal);
  const VF lacks = hn::NegMulAdd(quotient, e, hn::Sub(n, quotient));
  return hn::MulAdd(lacks, reciprocal, quotient);
#else
  return hn::Div(n, sum);
#endif
}

}  // namespace

QUERN_INLINE(Vec, q_sigmoid_f32)(Vec raw) {
  const VF x = FromRaw(raw), one = Const(1.0f);
  const VF e = ExpDown(hn::Neg(hn::Abs(x)));
  return ToRaw(Quotient(hn::IfNegativeThenElse(x, e, one), e));
}

QUERN_INLINE(VecF64, q_sigmoid_f64)(VecF64 raw) {
  const VD x = FromRaw(raw), one = ConstF64(1);
  const VD e = Exp(hn::Neg(hn::Abs(x)));
  return ToRaw(hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(kF64)), e, one), hn::Add(one, e)));
}
