// exp on Highway vectors, shared by exp, sigmoid, tanh and erf.
//
// x = n ln 2 + r with |r| <= ln(2)/2; exp(x) = 2^n (1 + r + r r p(r)). The rounding error of r is carried along, since
// the sum 1 + r + ... would otherwise see it beside its own.
#pragma once

#include "simd/math/vector.h"

namespace {

// p 2^n for integral n in [-150, 128], rounded once where the result is subnormal.
HWY_INLINE VF TimesPowerOfTwo(VF p, VF n) {
#if HWY_TARGET <= HWY_AVX3
  return VF{_mm512_scalef_ps(p.raw, n.raw)};
#else
  const VI exponent = hn::ConvertTo(kI32, n);
  const VI first = hn::ShiftRight<1>(exponent);  // 2^n itself may lie outside the range of floats, its halves do not
  const VI bias = hn::Set(kI32, 127);
  const VF a = hn::BitCast(kF32, hn::ShiftLeft<23>(hn::Add(first, bias)));
  const VF b = hn::BitCast(kF32, hn::ShiftLeft<23>(hn::Add(hn::Sub(exponent, first), bias)));
  return hn::Mul(hn::Mul(p, a), b);
#endif
}

// x limited to [lo, hi]; NaN stays NaN, which Min and Max do not promise.
HWY_INLINE VF ClampKeepNan(VF x, float lo, float hi) {
  x = hn::IfThenElse(hn::Lt(x, Const(lo)), Const(lo), x);
  return hn::IfThenElse(hn::Gt(x, Const(hi)), Const(hi), x);
}

// exp(x) = 2^n (1 + r + tail).
struct Reduced {
  VF n, r, tail;
};

// Of x + low, |low| far below |x|, for x in [-104, 89] or NaN.
HWY_INLINE Reduced Reduce(VF x, VF low) {
  const VF n = hn::Round(hn::Mul(x, Const(1.44269504f)));
  const VF reduced = hn::NegMulAdd(n, Const(kLn2Hi), x);  // exact
  const VF r = hn::NegMulAdd(n, Const(kLn2Lo), reduced);
  const VF r_low = hn::Add(hn::NegMulAdd(n, Const(kLn2Lo), hn::Sub(reduced, r)), low);
  const VF p = Poly(r, 4.99999940e-01f, 1.66665226e-01f, 4.16682921e-02f, 8.36853217e-03f, 1.38182985e-03f);
  return {n, r, hn::MulAdd(hn::Mul(r, r), p, r_low)};
}

// exp(x + low), |low| far below |x|, for x in [-104, 89] or NaN; beyond that range the exponent would not fit.
HWY_INLINE VF ExpInRange(VF x, VF low) {
  const Reduced e = Reduce(x, low);
  return TimesPowerOfTwo(hn::Add(Const(1.0f), hn::Add(e.r, e.tail)), e.n);
}

// exp(x) for every x: 0 below -104, inf above 89, NaN for NaN.
HWY_INLINE VF Exp(VF x) { return ExpInRange(ClampKeepNan(x, -104.0f, 89.0f), hn::Zero(kF32)); }

}  // namespace
