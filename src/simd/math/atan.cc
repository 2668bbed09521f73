// q_atan_f32 and q_atan2_f32.
//
// One polynomial on [0, 1]; larger quotients by atan(t) = pi/2 - atan(1/t). Signs of zero and infinities as in C99:
// atan2(+-0, -0) = +-pi, atan2(+-inf, inf) = +-pi/4, NaN if either operand is NaN.
#include "simd/math/vector.h"

namespace {

constexpr float kPiHi = 3.14159274f;
constexpr float kPiLo = -8.74227800e-08f;

// atan(t) for t in [0, 1].
HWY_INLINE VF AtanKernel(VF t) {
  const VF s = hn::Mul(t, t);
  const VF p = Poly(s, -3.33332986e-01f, 1.99985296e-01f, -1.42640159e-01f, 1.09508805e-01f, -8.39930624e-02f,
                    5.78813925e-02f, -3.10970023e-02f, 1.08687095e-02f, -1.78283197e-03f);
  return hn::MulAdd(hn::Mul(s, t), p, t);
}

HWY_INLINE VF SubtractFrom(float hi, float lo, VF x) { return hn::Sub(Const(hi), hn::Sub(x, Const(lo))); }

}  // namespace

QUERN_INLINE(Vec, q_atan_f32)(Vec raw) {
  const VF x = FromRaw(raw);
  const VF magnitude = hn::Abs(x);
  const MF inverted = hn::Gt(magnitude, Const(1.0f));
  const VF t = hn::IfThenElse(inverted, hn::Div(Const(1.0f), magnitude), magnitude);
  const VF angle = AtanKernel(t);
  return ToRaw(hn::CopySign(hn::IfThenElse(inverted, SubtractFrom(kPiHi / 2, kPiLo / 2, angle), angle), x));
}

QUERN_INLINE(Vec, q_atan2_f32)(Vec raw_y, Vec raw_x) {
  const VF y = FromRaw(raw_y);
  const VF x = FromRaw(raw_x);
  const VF rise = hn::Abs(y);
  const VF run = hn::Abs(x);
  const MF steep = hn::Gt(rise, run);
  const VF larger = hn::IfThenElse(steep, rise, run);
  const VF smaller = hn::IfThenElse(steep, run, rise);
  VF t = hn::Div(smaller, larger);
  t = hn::IfThenElse(hn::Eq(smaller, larger), Const(1.0f), t);  // also inf / inf
  t = hn::IfThenElse(hn::Eq(larger, hn::Zero(kF32)), hn::Zero(kF32), t);
  VF angle = AtanKernel(t);
  angle = hn::IfThenElse(steep, SubtractFrom(kPiHi / 2, kPiLo / 2, angle), angle);
  const MF left = hn::MaskFromVec(hn::BitCast(kF32, hn::BroadcastSignBit(hn::BitCast(kI32, x))));  // -0 is left too
  angle = hn::IfThenElse(left, SubtractFrom(kPiHi, kPiLo, angle), angle);
  const MF ordered = hn::And(hn::Eq(y, y), hn::Eq(x, x));
  angle = hn::IfThenElse(ordered, hn::CopySign(angle, y), QuietNan());
  return ToRaw(angle);
}
