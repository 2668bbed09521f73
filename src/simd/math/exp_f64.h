// Exponentials of doubles, shared by exp, exp2, expm1, erf, pow, sigmoid and tanh: as those of floats (exp.h), without
// tables.
#pragma once

#include "simd/math/double.h"

namespace {

// 2^n for integral n in [-1022, 1023]: beside this number the low bits of a double count units.
HWY_INLINE VD PowerOfTwo(VD n) {
  return hn::BitCast(kF64, hn::ShiftLeft<52>(hn::BitCast(kU64, hn::Add(n, ConstF64(0x1.8p52 + 1023)))));
}

// exp(x) = 2^n (1 + rest).
struct PowerF64 {
  VD n, rest;
};

// exp(r + lost) - 1 of |r| <= ln(2)/2, lost far below it: right to its own last places.
HWY_INLINE VD RestOfExp(VD r, VD lost) {
  const VD p = Poly(r, 0.5, 0.16666666666666671, 0.04166666666666667, 0.0083333333333261351, 0.0013888888888883748,
                    0.00019841269874820625, 2.4801587325547741e-5, 2.7557255400206424e-6, 2.7557273643110295e-7,
                    2.5105217004720745e-8, 2.0914686968086877e-9);
  return hn::Add(r, hn::MulAdd(hn::Mul(r, r), p, lost));
}

// Of x in [-750, 710] or NaN.
HWY_INLINE PowerF64 SplitExp(VD x) {
  const VD n = hn::Round(hn::Mul(x, ConstF64(0x1.71547652b82fep+0)));
  const VD reduced = hn::NegMulAdd(n, ConstF64(0x1.62e42feep-1), x);  // exact: the number has 32 bits
  const VD low = ConstF64(0x1.a39ef35793c76p-33);
  const VD r = hn::NegMulAdd(n, low, reduced);
  const VD lost = hn::NegMulAdd(n, low, hn::Sub(reduced, r));
  return {n, RestOfExp(r, lost)};
}

HWY_INLINE VD Clamp(VD x, double lo, double hi) {
  return hn::Min(ConstF64(hi), hn::Max(ConstF64(lo), x));  // NaN stays NaN: see AtMost
}

// Through the subnormals to 0, inf where it is too large. 2^n itself may lie outside of the range of doubles, its
// halves do not.
HWY_INLINE VD Scaled(PowerF64 e) {
  const VD half = hn::Round(hn::Mul(e.n, ConstF64(0.5)));
  const VD p = hn::Add(ConstF64(1), e.rest);
  return hn::Mul(hn::Mul(p, PowerOfTwo(half)), PowerOfTwo(hn::Sub(e.n, half)));
}

// exp(x) for every x, NaN for NaN.
HWY_INLINE VD Exp(VD x) { return Scaled(SplitExp(Clamp(x, -750, 710))); }

// 2^x for every x; exact where x is whole.
HWY_INLINE VD Exp2(VD x) {
  const VD clamped = Clamp(x, -1100, 1025), n = hn::Round(clamped);
  const VD f = hn::Sub(clamped, n), r = hn::Mul(f, ConstF64(0x1.62e42fefa39efp-1));
  return Scaled({n, RestOfExp(r, hn::Mul(f, ConstF64(0x1.abc9e3b39803fp-56)))});
}

}  // namespace
