// q_pow_f32: x^y = 2^(y log2 |x|), with the special cases of C99 (F.9.4.4).
//
// The product y log2 |x| reaches 150 and its absolute error is the result's relative one, which asks for eight bits
// more than a float has; so the middle runs in double, where subnormal x and overflow need no care either: the final
// conversion rounds. Within 0.52 ULP.
#include "simd/math/double.h"

namespace {

// log2 of a positive finite double in the range of floats.
HWY_INLINE VD Log2(VD x) {
  const auto bits = hn::BitCast(kU64, x);
  // Exponent k and mantissa m with x = 2^k m, sqrt(1/2) <= m < sqrt(2).
  const uint64_t one = 0x3ff0000000000000u;
  const uint64_t root_half = 0x3fe6a09e667f3bcdu;
  const auto moved = hn::Add(bits, hn::Set(kU64, one - root_half));
  const auto biased = hn::ShiftRight<52>(moved);  // k + 1023
  const VD mantissa =
      hn::BitCast(kF64, hn::Add(hn::And(moved, hn::Set(kU64, 0x000fffffffffffffu)), hn::Set(kU64, root_half)));
  // An integer below 2^52 placed in the mantissa of 2^52 becomes a double without a conversion instruction.
  const VD k = hn::Sub(hn::BitCast(kF64, hn::Or(biased, hn::Set(kU64, 0x4330000000000000u))),
                       hn::Set(kF64, 4503599627370496.0 + 1023.0));
  const VD unit = hn::Set(kF64, 1.0);
  const VD s = hn::Div(hn::Sub(mantissa, unit), hn::Add(mantissa, unit));
  const VD p = Poly(hn::Mul(s, s), 2.8853900817778499e+00, 9.6179669411472035e-01, 5.7707794185624517e-01,
                    4.1220931064054367e-01, 3.1990308455251254e-01, 2.8294024486966596e-01);
  return hn::MulAdd(s, p, k);
}

// 2^x; beyond +-200 the float result is 0 or inf in any case.
HWY_INLINE VD Exp2(VD x) {
  x = hn::IfThenElse(hn::Lt(x, hn::Set(kF64, -200.0)), hn::Set(kF64, -200.0), x);
  x = hn::IfThenElse(hn::Gt(x, hn::Set(kF64, 200.0)), hn::Set(kF64, 200.0), x);
  const VD shift = hn::Set(kF64, 0x1.8p52);
  const VD shifted = hn::Add(x, shift);  // the integer part sits in the low mantissa bits
  const VD r = hn::Sub(x, hn::Sub(shifted, shift));
  const VD p = Poly(r, 9.9999999996168210e-01, 6.9314718072846515e-01, 2.4022651198155195e-01, 5.5504103533902623e-02,
                    9.6180272539492309e-03, 1.3333922609841346e-03, 1.5469291062801719e-04, 1.5201910949728624e-05);
  return hn::BitCast(kF64, hn::Add(hn::BitCast(kU64, p), hn::ShiftLeft<52>(hn::BitCast(kU64, shifted))));
}

}  // namespace

QUERN_INLINE(Vec, q_pow_f32)(Vec raw_x, Vec raw_y) {
  const VF x = FromRaw(raw_x);
  const VF y = FromRaw(raw_y);
  const VF one = Const(1.0f);
  const VF zero = hn::Zero(kF32);
  const VF base = hn::Abs(x);

  // 0, inf and NaN take their logarithm from here; the polynomial sees a number instead.
  const MF regular = hn::And(hn::Gt(base, zero), hn::Lt(base, Infinity()));
  const VF irregular_log = hn::IfThenElse(hn::Eq(base, zero), hn::Neg(Infinity()), base);
  const Doubles wide_base = ToDouble(hn::IfThenElse(regular, base, one));
  const Doubles wide_y = ToDouble(y);
  const Doubles power = {Exp2(hn::Mul(wide_y.lower, Log2(wide_base.lower))),
                         Exp2(hn::Mul(wide_y.upper, Log2(wide_base.upper)))};
  VF result = ToFloat(power);

  // |x| is 0, inf or NaN: log2 is -inf, inf or NaN, and the product's sign decides.
  const VF product = hn::Mul(irregular_log, y);
  const VF limit =
      hn::IfThenElse(hn::Gt(product, zero), Infinity(), hn::IfThenElse(hn::Lt(product, zero), zero, product));
  result = hn::IfThenElse(regular, result, limit);
  // A NaN exponent gives NaN through the polynomial's integer steps only by chance.
  result = hn::IfThenElse(hn::Eq(y, y), result, y);

  // Negative x: the sign follows an odd integral y; any other finite y that is not integral has no result.
  const VF y_size = hn::Abs(y);
  const MF integral = hn::Or(hn::Eq(hn::Round(y), y), hn::Ge(y_size, Const(16777216.0f)));
  const VF half = hn::Mul(y, Const(0.5f));
  const MF odd = hn::And(hn::And(integral, hn::Ne(hn::Round(half), half)), hn::Lt(y_size, Const(16777216.0f)));
  const VF sign = hn::IfThenElseZero(odd, hn::And(x, hn::BitCast(kF32, hn::Set(kU32, 0x80000000u))));
  result = hn::Xor(result, sign);
  const MF undefined = hn::AndNot(integral, hn::And(hn::Lt(x, zero), hn::Gt(x, hn::Neg(Infinity()))));
  result = hn::IfThenElse(undefined, QuietNan(), result);

  // 1^y and x^0 are 1 even for NaN; (-1)^+-inf is 1.
  const MF unit_base = hn::Or(hn::Eq(x, one), hn::And(hn::Eq(base, one), hn::Eq(y_size, Infinity())));
  return ToRaw(hn::IfThenElse(hn::Or(unit_base, hn::Eq(y, zero)), one, result));
}
