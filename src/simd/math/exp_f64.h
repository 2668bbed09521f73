// Exponentials of doubles, shared by exp, expm1, sigmoid and tanh: as those of floats (exp.h), without tables.
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

// Of x in [-750, 710] or NaN. The rest is right to its own last places.
HWY_INLINE PowerF64 SplitExp(VD x) {
  const VD n = hn::Round(hn::Mul(x, ConstF64(0x1.71547652b82fep+0)));
  const VD reduced = hn::NegMulAdd(n, ConstF64(0x1.62e42feep-1), x);  // exact: the number has 32 bits
  const VD low = ConstF64(0x1.a39ef35793c76p-33);
  const VD r = hn::NegMulAdd(n, low, reduced);
  const VD lost = hn::NegMulAdd(n, low, hn::Sub(reduced, r));
  const VD p = Poly(r, 0.5, 0.16666666666666671, 0.04166666666666667, 0.0083333333333261351, 0.0013888888888883748,
                    0.00019841269874820625, 2.4801587325547741e-5, 2.7557255400206424e-6, 2.7557273643110295e-7,
                    2.5105217004720745e-8, 2.0914686968086877e-9);
  return {n, hn::Add(r, hn::MulAdd(hn::Mul(r, r), p, lost))};
}

HWY_INLINE VD Clamp(VD x, double lo, double hi) {
  return hn::Min(ConstF64(hi), hn::Max(ConstF64(lo), x));  // NaN stays NaN: see AtMost
}

// exp(x) for every x: through the subnormals to 0, inf where it is too large, NaN for NaN. 2^n itself may lie outside
// of the range of doubles, its halves do not.
HWY_INLINE VD Exp(VD x) {
  const PowerF64 e = SplitExp(Clamp(x, -750, 710));
  const VD half = hn::Round(hn::Mul(e.n, ConstF64(0.5)));
  const VD p = hn::Add(ConstF64(1), e.rest);
  return hn::Mul(hn::Mul(p, PowerOfTwo(half)), PowerOfTwo(hn::Sub(e.n, half)));
}

}  // namespace
