// q_atan_f32 and q_atan2_f32, q_atan_f64 and q_atan2_f64.
//
// One polynomial on [0, 1]; larger quotients by atan(t) = pi/2 - atan(1/t). That of doubles ends at tan(pi/8), beyond
// which it is of the angle to pi/4. Signs of zero and infinities as in C99: atan2(+-0, -0) = +-pi,
// atan2(+-inf, inf) = +-pi/4, NaN if either operand is NaN.
#include "simd/math/double.h"
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

// An angle: eighths pi/4 + rest.
struct Angle {
  VD eighths, rest;
};

// atan(n / d) of 0 <= n <= d; 0 where d is infinite.
HWY_INLINE Angle AtanOfQuotient(VD n, VD d) {
  const auto far = hn::Gt(n, hn::Mul(d, ConstF64(0x1.a827999fcef32p-2)));
  const VD t = hn::Div(hn::IfThenElse(far, hn::Sub(n, d), n), hn::IfThenElse(far, hn::Add(n, d), d));
  const VD s = hn::Mul(t, t);
  const VD p = Poly(s, -0.33333333333333333, 0.19999999999999804, -0.14285714285659778, 0.11111111105150588,
                    -0.090909087532591129, 0.076922963680422971, -0.066664247602005201, 0.058789275544738068,
                    -0.052304436406869477, 0.045515447340221617, -0.03456931506332609, 0.016284375050043394);
  return {hn::IfThenElseZero(far, ConstF64(1)), hn::MulAdd(hn::Mul(s, t), p, t)};
}

// As many eighths without it where `mask`.
template <class Mask>
HWY_INLINE Angle SubtractFrom(double eighths, Angle angle, Mask mask) {
  return {hn::IfThenElse(mask, hn::Sub(ConstF64(eighths), angle.eighths), angle.eighths),
          hn::IfThenElse(mask, hn::Neg(angle.rest), angle.rest)};
}

// Up to four times the first number is exact.
HWY_INLINE VD InRadians(Angle angle) {
  const VD low = hn::MulAdd(angle.eighths, ConstF64(0x1.1a62633145c07p-55), angle.rest);
  return hn::MulAdd(angle.eighths, ConstF64(0x1.921fb54442d18p-1), low);
}

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

QUERN_INLINE(VecF64, q_atan_f64)(VecF64 raw) {
  const VD x = FromRaw(raw), one = ConstF64(1), magnitude = hn::Abs(x);
  const auto inverted = hn::Gt(magnitude, one);
  const Angle angle =
      AtanOfQuotient(hn::IfThenElse(inverted, one, magnitude), hn::IfThenElse(inverted, magnitude, one));
  return ToRaw(hn::CopySign(InRadians(SubtractFrom(2, angle, inverted)), x));
}

QUERN_INLINE(VecF64, q_atan2_f64)(VecF64 raw_y, VecF64 raw_x) {
  const VD y = FromRaw(raw_y), x = FromRaw(raw_x), one = ConstF64(1);
  const VD rise = hn::Abs(y), run = hn::Abs(x);
  const auto steep = hn::Gt(rise, run);
  VD larger = hn::IfThenElse(steep, rise, run), smaller = hn::IfThenElse(steep, run, rise);
  const auto equal = hn::Eq(smaller, larger);  // also inf and inf, and 0 and 0
  const VD zero = hn::Zero(kF64), both = hn::IfThenElse(hn::Eq(larger, zero), zero, one);
  smaller = hn::IfThenElse(equal, both, smaller);
  larger = hn::IfThenElse(equal, one, larger);
  // The sum of the two may be no double.
  const VD scale = hn::IfThenElse(hn::Gt(larger, ConstF64(0x1p1020)), ConstF64(0.25), one);
  Angle angle = AtanOfQuotient(hn::Mul(smaller, scale), hn::Mul(larger, scale));
  angle = SubtractFrom(2, angle, steep);
  const auto left = hn::Lt(hn::CopySign(one, x), zero);  // -0 is left too
  const VD radians = InRadians(SubtractFrom(4, angle, left));
  const VD nan = hn::BitCast(kF64, hn::Set(kU64, 0x7ff8000000000000u));
  const auto ordered = hn::And(hn::Eq(y, y), hn::Eq(x, x));
  return ToRaw(hn::IfThenElse(ordered, hn::CopySign(radians, y), nan));
}
