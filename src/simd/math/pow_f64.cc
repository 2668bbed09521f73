// q_pow_f64: x^y = exp(y log |x|), with the special cases of C99 (F.9.4.4), as q_pow_f32 has them.
//
// The product y log |x| reaches 745 and its absolute error is the result's relative one, which asks for ten bits more
// than a double has; so logarithm and product are sums of two doubles.
#include "simd/math/exp_f64.h"
#include "simd/math/exponent_f64.h"

namespace {

// high + low, low at most about the last place of high.
struct Pair {
  VD high, low;
};

// a + b, exactly; of the second |a| >= |b| or a = 0.
HWY_INLINE Pair Sum(VD a, VD b) {
  const VD sum = hn::Add(a, b), of_b = hn::Sub(sum, a);
  return {sum, hn::Add(hn::Sub(a, hn::Sub(sum, of_b)), hn::Sub(b, of_b))};
}
HWY_INLINE Pair OrderedSum(VD a, VD b) {
  const VD sum = hn::Add(a, b);
  return {sum, hn::Sub(b, hn::Sub(sum, a))};
}

#if !HWY_NATIVE_FMA
// The upper 26 bits.
HWY_INLINE VD UpperHalf(VD x) {
  const VD moved = hn::Mul(x, ConstF64(0x1p27 + 1));
  return hn::Sub(moved, hn::Sub(moved, x));
}
#endif

// a b, exactly.
HWY_INLINE Pair Product(VD a, VD b) {
  const VD product = hn::Mul(a, b);
#if HWY_NATIVE_FMA
  return {product, hn::MulSub(a, b, product)};
#else
  const VD a_upper = UpperHalf(a), b_upper = UpperHalf(b), a_lower = hn::Sub(a, a_upper), b_lower = hn::Sub(b, b_upper);
  const VD crossed = hn::Add(hn::Mul(a_upper, b_lower), hn::Mul(a_lower, b_upper));
  return {product, hn::Add(hn::Mul(a_lower, b_lower), hn::Add(hn::Sub(hn::Mul(a_upper, b_upper), product), crossed))};
#endif
}

HWY_INLINE Pair Product(Pair a, Pair b) {
  const Pair product = Product(a.high, b.high);
  return {product.high, hn::MulAdd(a.high, b.low, hn::MulAdd(a.low, b.high, product.low))};
}

// log(x) of positive finite x to about 65 bits: 2 atanh(s) = 2 s + s z (2/3 + z p(z)), s = f / (2 + f), z = s s.
HWY_INLINE Pair LogPair(VD x) {
  const auto [k, f] = SplitExponent(x);
  const Pair divisor = OrderedSum(ConstF64(2), f);
  Pair s;
  s.high = hn::Div(f, divisor.high);
  const Pair back = Product(s.high, divisor.high);
  const VD lacks = hn::NegMulAdd(s.high, divisor.low, hn::Sub(hn::Sub(f, back.high), back.low));
  s.low = hn::Div(lacks, divisor.high);
  const Pair z = Product(s, s);
  const VD p = Poly(z.high, 0.4, 0.28571428571429371, 0.22222222221652765, 0.18181818336099846, 0.15384594887007179,
                    0.13334808798812339, 0.11706126464563397, 0.11724327060846747);
  Pair third = OrderedSum(ConstF64(0x1.5555555555555p-1), hn::Mul(z.high, p));
  third.low = hn::Add(third.low, ConstF64(0x1.5555555555555p-55));
  const Pair rest = Product(s, Product(z, third));
  const Pair fraction = OrderedSum(hn::Add(s.high, s.high), rest.high);
  const Pair whole = Sum(hn::Mul(k, ConstF64(0x1.62e42feep-1)), fraction.high);
  const VD low = hn::Add(hn::Add(hn::Add(s.low, s.low), rest.low), fraction.low);
  return OrderedSum(whole.high, hn::Add(whole.low, hn::MulAdd(k, ConstF64(0x1.a39ef35793c76p-33), low)));
}

// exp(x + low) with |x| <= 750; low at most 2^-40.
HWY_INLINE VD ExpOfPair(VD x, VD low) {
  PowerF64 e = SplitExp(x);
  // exp(x) low beside exp(x).
  e.rest = hn::Add(e.rest, hn::Mul(low, hn::Add(ConstF64(1), e.rest)));
  return Scaled(e);
}

}  // namespace

QUERN_INLINE(VecF64, q_pow_f64)(VecF64 raw_x, VecF64 raw_y) {
  const VD x = FromRaw(raw_x), y = FromRaw(raw_y), one = ConstF64(1), zero = hn::Zero(kF64);
  const VD infinity = hn::BitCast(kF64, hn::Set(kU64, 0x7ff0000000000000u)),
           nan = hn::BitCast(kF64, hn::Set(kU64, 0x7ff8000000000000u));
  const VD base = hn::Abs(x), y_size = hn::Abs(y);

  // 0, inf and NaN take their logarithm from here; the polynomial sees a number instead.
  const auto regular = hn::And(hn::Gt(base, zero), hn::Lt(base, infinity));
  const VD irregular_log = hn::IfThenElse(hn::Eq(base, zero), hn::Neg(infinity), base);
  const Pair log = LogPair(hn::IfThenElse(regular, base, one));
  // The least logarithm but 0 is 2^-53: of more than 2^66 of it nothing else comes.
  const Pair power = Product(Clamp(y, -0x1p66, 0x1p66), log.high);
  const VD low = hn::MulAdd(Clamp(y, -0x1p66, 0x1p66), log.low, power.low);
  const auto near = hn::Lt(hn::Abs(power.high), ConstF64(800));
  VD result = ExpOfPair(Clamp(power.high, -750, 710), hn::IfThenElseZero(near, low));

  // |x| is 0, inf or NaN: the logarithm is -inf, inf or NaN, and the product's sign decides.
  const VD product = hn::Mul(irregular_log, y);
  const VD limit =
      hn::IfThenElse(hn::Gt(product, zero), infinity, hn::IfThenElse(hn::Lt(product, zero), zero, product));
  result = hn::IfThenElse(regular, result, limit);
  result = hn::IfThenElse(hn::Eq(y, y), result, y);

  // Negative x: the sign follows an odd integral y; any other finite y that is not integral has no result.
  const auto integral = hn::Eq(hn::Round(y), y);
  const VD half = hn::Mul(y, ConstF64(0.5));
  const auto odd = hn::And(hn::And(integral, hn::Ne(hn::Round(half), half)), hn::Lt(y_size, ConstF64(0x1p53)));
  result = hn::Xor(result, hn::IfThenElseZero(odd, hn::And(x, hn::BitCast(kF64, hn::Set(kU64, 0x8000000000000000u)))));
  const auto undefined = hn::AndNot(integral, hn::And(hn::Lt(x, zero), hn::Gt(x, hn::Neg(infinity))));
  result = hn::IfThenElse(undefined, nan, result);

  // 1^y and x^0 are 1 even for NaN; (-1)^+-inf is 1.
  const auto unit_base = hn::Or(hn::Eq(x, one), hn::And(hn::Eq(base, one), hn::Eq(y_size, infinity)));
  return ToRaw(hn::IfThenElse(hn::Or(unit_base, hn::Eq(y, zero)), one, result));
}
