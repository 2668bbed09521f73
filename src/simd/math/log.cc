// q_log_f32, q_log2_f32 and q_log1p_f32, q_log_f64, q_log2_f64 and q_log1p_f64.
//
// x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2). log and log2 are -inf at +-0, NaN below 0, inf at inf, NaN at
// NaN, exact at 1; log2 of a power of two is exact. Subnormals are scaled first. log1p is log(1 + x) before 1 + x is
// rounded: x itself at +-0 and wherever that is the nearest.
#include "simd/math/double.h"
#include "simd/math/exponent_f64.h"
#include "simd/math/vector.h"

namespace {

struct Split {
  VF exponent;  // k
  VF fraction;  // f
};

// For positive finite x; for others both parts are meaningless and WithSpecials puts the result right.
HWY_INLINE Split SplitExponent(VF x) {
  const MF subnormal = hn::Lt(x, Const(1.17549435e-38f));
  const VF scaled = hn::IfThenElse(subnormal, hn::Mul(x, Const(16777216.0f)), x);
  const VI bits = hn::BitCast(kI32, scaled);
  const VI root_half = hn::Set(kI32, 0x3f3504f3);
  // The bits above sqrt(1/2)'s, taken as a count of binades, round the exponent the way 1 + f wants it.
  const VI k = hn::ShiftRight<23>(hn::Sub(bits, root_half));
  const VF mantissa = hn::BitCast(kF32, hn::Sub(bits, hn::ShiftLeft<23>(k)));
  const VF scale = hn::IfThenElseZero(subnormal, Const(24.0f));
  return {hn::Sub(hn::ConvertTo(kF32, k), scale), hn::Sub(mantissa, Const(1.0f))};
}

HWY_INLINE VF WithSpecials(VF x, VF result) {
  const VF zero = hn::Zero(kF32);
  result = hn::IfThenElse(hn::Lt(x, Infinity()), result, x);  // inf and NaN give themselves
  result = hn::IfThenElse(hn::Lt(x, zero), QuietNan(), result);
  return hn::IfThenElse(hn::Eq(x, zero), hn::Neg(Infinity()), result);
}

// log(x + x low), low far below 1, for positive finite x.
HWY_INLINE VF Log(VF x, VF low) {
  const Split split = SplitExponent(x);
  const VF f = split.fraction;
  const VF square = hn::Mul(f, f);
  const VF p = Poly(f, 3.33333135e-01f, -2.50000089e-01f, 2.00020716e-01f, -1.66679889e-01f, 1.42203584e-01f,
                    -1.24062337e-01f, 1.18835486e-01f, -1.16700985e-01f, 6.74926937e-02f);
  VF tail = hn::MulAdd(hn::Mul(square, f), p, hn::MulAdd(split.exponent, Const(kLn2Lo), low));
  tail = hn::NegMulAdd(square, Const(0.5f), tail);
  return hn::MulAdd(split.exponent, Const(kLn2Hi), hn::Add(f, tail));
}

// The same of doubles: k, and log(1 + f) + low = f - rest with log(1 + f) = 2 atanh(s), s = f / (2 + f). `low`
// becomes one with what k leaves of the second part of ln 2.
struct LogF64 {
  VD k, f, rest;
};
HWY_INLINE LogF64 SplitLog(VD x, VD low, double ln2_low) {
  const auto [k, f] = SplitExponent(x);
  const VD s = hn::Div(f, hn::Add(f, ConstF64(2))), z = hn::Mul(s, s);
  const VD p = Poly(z, 0.66666666666666666, 0.40000000000000883, 0.28571428570799785, 0.22222222392581045,
                    0.18181795547521136, 0.15386244737621667, 0.13268638369266824, 0.13088034850927554);
  // 2 s = f - f s, and f s = f f / 2 - s f f / 2: f itself is exact.
  const VD square = hn::Mul(hn::Mul(f, f), ConstF64(0.5));
  const VD tail = hn::MulAdd(s, hn::MulAdd(z, p, square), hn::MulAdd(k, ConstF64(ln2_low), low));
  return {k, f, hn::Sub(square, tail)};
}
HWY_INLINE VD Log(VD x, VD low) {
  const LogF64 log = SplitLog(x, low, 0x1.a39ef35793c76p-33);
  return hn::MulAdd(log.k, ConstF64(0x1.62e42feep-1), hn::Sub(log.f, log.rest));
}

HWY_INLINE VD WithSpecials(VD x, VD result) {
  const VD zero = hn::Zero(kF64), infinity = hn::BitCast(kF64, hn::Set(kU64, 0x7ff0000000000000u));
  result = hn::IfThenElse(hn::Lt(x, infinity), result, x);
  result = hn::IfThenElse(hn::Lt(x, zero), hn::BitCast(kF64, hn::Set(kU64, 0x7ff8000000000000u)), result);
  return hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), result);
}

}  // namespace

QUERN_INLINE(Vec, q_log_f32)(Vec raw) {
  const VF x = FromRaw(raw);
  return ToRaw(WithSpecials(x, Log(x, hn::Zero(kF32))));
}

// What rounding takes from 1 + x is a part of it that is put back.
QUERN_INLINE(Vec, q_log1p_f32)(Vec raw) {
  const VF x = FromRaw(raw), one = Const(1.0f);
  const VF sum = hn::Add(one, x), of_x = hn::Sub(sum, one);
  const VF lost = hn::Add(hn::Sub(one, hn::Sub(sum, of_x)), hn::Sub(x, of_x));
  const VF log = WithSpecials(sum, Log(sum, hn::Div(lost, sum)));
  // Of the smallest x all is lost, and -0 would become +0.
  return ToRaw(hn::IfThenElse(hn::Lt(hn::Abs(x), Const(2.9802322e-08f)), x, log));
}

QUERN_INLINE(Vec, q_log2_f32)(Vec raw) {
  const VF x = FromRaw(raw);
  const Split split = SplitExponent(x);
  const VF f = split.fraction;
  const VF p = Poly(f, 4.42695051e-01f, -7.21347511e-01f, 4.80896503e-01f, -3.60682577e-01f, 2.88618803e-01f,
                    -2.39952147e-01f, 2.04156771e-01f, -1.88254431e-01f, 1.86865330e-01f, -1.16394520e-01f);
  return ToRaw(WithSpecials(x, hn::Add(split.exponent, hn::MulAdd(f, p, f))));
}

QUERN_INLINE(VecF64, q_log_f64)(VecF64 raw) {
  const VD x = FromRaw(raw);
  return ToRaw(WithSpecials(x, Log(x, hn::Zero(kF64))));
}

QUERN_INLINE(VecF64, q_log1p_f64)(VecF64 raw) {
  const VD x = FromRaw(raw), one = ConstF64(1);
  const VD sum = hn::Add(one, x), of_x = hn::Sub(sum, one);
  const VD lost = hn::Add(hn::Sub(one, hn::Sub(sum, of_x)), hn::Sub(x, of_x));
  const VD log = WithSpecials(sum, Log(sum, hn::Div(lost, sum)));
  return ToRaw(hn::IfThenElse(hn::Lt(hn::Abs(x), ConstF64(0x1p-54)), x, log));
}

// k is added last, such that powers of two are exact.
QUERN_INLINE(VecF64, q_log2_f64)(VecF64 raw) {
  const VD x = FromRaw(raw);
  const LogF64 log = SplitLog(x, hn::Zero(kF64), 0);
  const VD fraction = hn::Mul(hn::Sub(log.f, log.rest), ConstF64(0x1.71547652b82fep+0));
  return ToRaw(WithSpecials(x, hn::Add(log.k, fraction)));
}
