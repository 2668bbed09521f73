// Exponentials on Highway vectors, shared by exp, expm1, sigmoid, tanh and erf.
//
// x = k ln 2 + r, and exp(x) = 2^k exp(r) with a polynomial for exp(r). Levels with AVX-512 take k in sixteenths: 2^k
// is then a power of two and a number of a register that holds 2^(j/16), |r| <= ln(2)/32, and the polynomial is short.
#pragma once

#include "simd/math/vector.h"

namespace {

// exp(x) = 2 half (1 + rest). The rest is right to its own last place, however small it is.
struct Power {
  VF half, rest;
};

#if HWY_TARGET <= HWY_AVX3

// x = k ln 2 + r, k in sixteenths.
struct Sixteenths {
  VF k, r;
  VI j;  // 16 k, of which the low four bits choose 2^(j/16)
};

// r, which is a small number then too where x lies far outside the range of results, or is infinite.
HWY_INLINE VF Small(VF r) {
  constexpr int kNearerToZero = 2;  // of the two, with the sign of the first; the other where one is NaN
  return VF{_mm512_range_ps(r.raw, Const(0.5f).raw, kNearerToZero)};
}

constexpr float kSixteenths = 786432.0f;  // beside it the unit in the last place is 1/16

HWY_INLINE Sixteenths Reduce(VF x) {
  const VF shift = Const(kSixteenths);
  const VF shifted = hn::MulAdd(x, Const(1.44269504f), shift);
  const VF k = hn::Sub(shifted, shift);
  const VF r = hn::NegMulAdd(k, Const(kLn2Lo), hn::NegMulAdd(k, Const(kLn2Hi), x));
  return {k, Small(r), hn::BitCast(kI32, shifted)};
}

// 2^(j/16), and what these numbers leave of it, divided by it.
alignas(64) constexpr float kPowers[16] = {1.0f,        1.04427373f, 1.09050775f, 1.13878858f, 1.18920708f, 1.24185777f,
                                           1.29683959f, 1.35425556f, 1.41421354f, 1.47682619f, 1.54221082f, 1.61049032f,
                                           1.68179286f, 1.75625217f, 1.8340081f,  1.91520655f};
alignas(64) constexpr float kPowersLow[16] = {0.0f,
                                              4.62854687e-08f,
                                              -1.19921572e-08f,
                                              4.72978214e-08f,
                                              3.19341798e-08f,
                                              3.62105718e-08f,
                                              -3.09907217e-08f,
                                              -7.47521322e-09f,
                                              1.71142710e-08f,
                                              -3.04768352e-08f,
                                              5.23333422e-09f,
                                              6.10759158e-09f,
                                              -1.47196057e-08f,
                                              -5.25879515e-09f,
                                              -6.12825986e-09f,
                                              5.14060919e-09f};
// The bits of 2^(j/16 - 1), less those that j << 19 adds.
struct HalfPowers {
  int32_t bits[16];
};
alignas(64) constexpr HalfPowers kHalfPowers = [] {
  HalfPowers powers = {};
  for (int j = 0; j < 16; ++j) powers.bits[j] = __builtin_bit_cast(int32_t, kPowers[j] / 2) - (j << 19);
  return powers;
}();

// 2^k (1 + rest), rounded once.
HWY_INLINE VF TimesPower(Sixteenths e, VF rest) {
  const VF power = LookUp(kPowers, e.j);
  return VF{_mm512_scalef_ps(hn::MulAdd(power, rest, power).raw, e.k.raw)};  // rounds k down
}

// exp(r) - 1, the last term given: r, to which may be added what is to be added to r.
HWY_INLINE VF Rest(VF r, VF last) { return hn::MulAdd(hn::Mul(r, r), Poly(r, 5.00016212e-01f, 1.66669235e-01f), last); }

// exp(x) and 2^x for every x: through the subnormals to 0, inf where it is too large, NaN for NaN.
HWY_INLINE VF Exp(Sixteenths e) { return TimesPower(e, Rest(e.r, e.r)); }
HWY_INLINE VF Exp(VF x) { return Exp(Reduce(x)); }
// exp(x) where it is not too large, as near as a float comes but for a few hundredths of its last place, for twice the
// look-ups.
HWY_INLINE VF ExpDown(VF x) {
  const Sixteenths e = Reduce(x);
  return TimesPower(e, Rest(e.r, hn::Add(e.r, LookUp(kPowersLow, e.j))));
}
HWY_INLINE VF Exp2(VF x) {
  const VF shift = Const(kSixteenths), shifted = hn::Add(x, shift), k = hn::Sub(shifted, shift);
  return Exp(Sixteenths{k, Small(hn::Mul(hn::Sub(x, k), Const(0.693147182f))), hn::BitCast(kI32, shifted)});
}

// Of x in [-87, 89] or NaN. The sum r + low is rounded once.
HWY_INLINE Power SplitExp(VF x) {
  const VF shift = Const(kSixteenths);
  const VF shifted = hn::MulAdd(x, Const(1.44269504f), shift), k = hn::Sub(shifted, shift);
  const VI j = hn::BitCast(kI32, shifted);
  const VF low = hn::NegMulAdd(k, Const(kLn2Lo), LookUp(kPowersLow, j));
  const VF r = hn::Add(hn::NegMulAdd(k, Const(kLn2Hi), x), low);
  const VF rest = hn::MulAdd(hn::Mul(r, r), Poly(r, 5.00000000e-01f, 1.66669905e-01f, 4.16672677e-02f), r);
  return {hn::BitCast(kF32, hn::Add(LookUp(kHalfPowers.bits, j), hn::ShiftLeft<19>(j))), rest};
}

#else

// x = n ln 2 + reduced, but for n kLn2Lo. bits: 254 + n in the low nine.
struct Whole {
  VF n, reduced;
  VI bits;
};

// Beside it the unit in the last place is 1, and its low bits are twice the bias of an exponent.
constexpr float kWhole = 12582912.0f + 254.0f;

HWY_INLINE Whole Reduce(VF x) {
  const VF shift = Const(kWhole), shifted = hn::MulAdd(x, Const(1.44269504f), shift), n = hn::Sub(shifted, shift);
  return {n, hn::NegMulAdd(n, Const(kLn2Hi), x), hn::BitCast(kI32, shifted)};  // exact
}

// p 2^n for n in [-150, 128], rounded once where the result is subnormal: 2^n itself may lie outside the range of
// floats, its halves do not.
HWY_INLINE VF TimesPowerOfTwo(VF p, VI bits) {
  const VI first = hn::ShiftRight<1>(bits);
  const VF a = hn::BitCast(kF32, hn::ShiftLeft<23>(first)),
           b = hn::BitCast(kF32, hn::ShiftLeft<23>(hn::Sub(bits, first)));
  return hn::Mul(hn::Mul(p, a), b);
}

// exp(n ln 2 + reduced) / 2^n, and that less 1.
HWY_INLINE VF MantissaRest(Whole e) {
  const VF r = hn::NegMulAdd(e.n, Const(kLn2Lo), e.reduced);
  const VF p = PolyByPairs(r, 4.99999940e-01f, 1.66665226e-01f, 4.16682921e-02f, 8.36853217e-03f, 1.38182985e-03f);
  return hn::MulAdd(hn::Mul(r, r), p, r);
}
HWY_INLINE VF Mantissa(Whole e) { return hn::Add(Const(1.0f), MantissaRest(e)); }

// exp(x) and 2^x for every x: through the subnormals to 0, inf where it is too large, NaN for NaN; and exp(x) where it
// is not too large.
HWY_INLINE VF ExpDown(VF x) {
  const Whole e = Reduce(AtLeast(-104.0f, x));
  return TimesPowerOfTwo(Mantissa(e), e.bits);
}
HWY_INLINE VF Exp(VF x) { return ExpDown(AtMost(89.0f, x)); }
HWY_INLINE VF Exp2(VF x) {
  const VF shift = Const(kWhole), clamped = AtMost(129.0f, AtLeast(-151.0f, x));
  const VF shifted = hn::Add(clamped, shift);
  const VF r = hn::Sub(clamped, hn::Sub(shifted, shift));  // exact
  const VF p =
      Poly(r, 2.40226507e-01f, 5.55040501e-02f, 9.61808674e-03f, 1.33379723e-03f, 1.54520938e-04f, 1.43202287e-05f);
  const VF linear = hn::Mul(r, Const(6.93147182e-01f));
  return TimesPowerOfTwo(hn::Add(Const(1.0f), hn::MulAdd(hn::Mul(r, r), p, linear)), hn::BitCast(kI32, shifted));
}

// 2^n where that is an ordinary float.
HWY_INLINE VF PowerWithin(Whole e) { return hn::BitCast(kF32, hn::ShiftLeft<23>(hn::Sub(e.bits, hn::Set(kI32, 127)))); }

// exp(x) where it and 2^n are ordinary floats: of x in [-87, 88] or NaN.
HWY_INLINE VF ExpWithin(VF x) {
  const Whole e = Reduce(x);
  return hn::Mul(Mantissa(e), PowerWithin(e));
}

// Of x in [-87, 89] or NaN.
HWY_INLINE Power SplitExp(VF x) {
  const Whole e = Reduce(x);
  const VF r = hn::NegMulAdd(e.n, Const(kLn2Lo), e.reduced);
  // What rounding took from r.
  const VF low = hn::NegMulAdd(e.n, Const(kLn2Lo), hn::Sub(e.reduced, r));
  const VF p = Poly(r, 4.99999940e-01f, 1.66665226e-01f, 4.16682921e-02f, 8.36853217e-03f, 1.38182985e-03f);
  const VI exponent = hn::Sub(e.bits, hn::Set(kI32, 254 - 126));
  return {hn::BitCast(kF32, hn::ShiftLeft<23>(exponent)), hn::Add(r, hn::MulAdd(hn::Mul(r, r), p, low))};
}

#endif

}  // namespace
