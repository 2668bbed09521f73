// q_sin_f32, q_cos_f32, q_tan_f32, for every float.
//
// x = q pi/2 + r with |r| <= pi/4, found in double: up to 2^20 by two subtractions (the first product is exact), beyond
// that by Payne and Hanek's method on integers, one lane at a time, since such arguments are rare. sin and tan keep the
// sign of zero; infinities give NaN.
#include "simd/math/double.h"

namespace {

struct Reduced {
  VF r;
  VU quadrant;  // only its low two bits mean anything
};

constexpr float kFastLimit = 1048576.0f;
// pi/2 = kHalfPiHi + kHalfPiLo to 86 bits; kHalfPiHi has 33, so a 20-bit multiple of it is exact in double.
constexpr double kHalfPiHi = 0x1.921fb544p+0;
constexpr double kHalfPiLo = 0x1.0b4611a626331p-34;

struct HalfReduced {
  VD r;
  VD shifted;  // the quadrant sits in the low mantissa bits
};

HWY_INLINE HalfReduced ReduceHalf(VD x) {
  const VD shift = hn::Set(kF64, 0x1.8p52);
  const VD shifted = hn::MulAdd(x, hn::Set(kF64, 0x1.45f306dc9c883p-1), shift);
  const VD q = hn::Sub(shifted, shift);
  return {hn::NegMulAdd(q, hn::Set(kF64, kHalfPiLo), hn::NegMulAdd(q, hn::Set(kF64, kHalfPiHi), x)), shifted};
}

// 32 zeros, then the bits of 2/pi after the binary point.
constexpr uint32_t kTwoOverPi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                   0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};

// Payne-Hanek for one finite x, |x| = mantissa 2^shift >= 2^20. Of the bits of 2/pi only a window of 96 matters: those
// above it give whole turns, those below it less than 2^-70 of a quadrant. The window starts at bit shift + 30 of the
// table, so its bits as an integer times mantissa, modulo 2^96, are the angle modulo a turn in units of 2^-94
// quadrants.
HWY_INLINE float ReduceLarge(float x, uint32_t& quadrant) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint64_t mantissa = (bits & 0x7fffffu) | 0x800000u;
  const uint32_t start = ((bits >> 23) & 0xff) - 150 + 30;  // 27 to 134
  const uint32_t* words = kTwoOverPi + start / 32;
  const uint32_t part = start % 32;
  const auto window = [&](int k) {
    const uint64_t pair = (static_cast<uint64_t>(words[k]) << 32) | words[k + 1];
    return static_cast<uint32_t>(pair >> (32 - part));
  };
  const uint64_t p2 = mantissa * window(2);
  const uint64_t p1 = mantissa * window(1) + (p2 >> 32);
  const uint64_t p0 = mantissa * window(0) + (p1 >> 32);
  const uint64_t high = (p0 << 32) | (p1 & 0xffffffffu);              // bits 32 to 95
  const uint64_t fraction = (high << 2) | ((p2 >> 30) & 3);           // 64 bits below the quadrant's two
  quadrant = static_cast<uint32_t>((high >> 62) + (fraction >> 63));  // the nearest one, so that |r| <= pi/4
  const double r = static_cast<double>(static_cast<int64_t>(fraction)) * 0x1.921fb54442d18p-64;
  if ((bits >> 31) == 0) return static_cast<float>(r);
  quadrant = 0u - quadrant;
  return static_cast<float>(-r);
}

HWY_INLINE Reduced Reduce(VF x) {
  const Doubles wide = ToDouble(x);
  const HalfReduced lower = ReduceHalf(wide.lower);
  const HalfReduced upper = ReduceHalf(wide.upper);
  // The low 32 bits of each double, lower half first.
  const VU quadrant = hn::ConcatEven(kU32, hn::BitCast(kU32, upper.shifted), hn::BitCast(kU32, lower.shifted));
  Reduced result = {ToFloat({lower.r, upper.r}), quadrant};

  const MF finite = hn::Lt(hn::Abs(x), Infinity());
  const MF large = hn::And(finite, hn::Ge(hn::Abs(x), Const(kFastLimit)));
  result.r = hn::IfThenElse(finite, result.r, QuietNan());
  if (HWY_UNLIKELY(!hn::AllFalse(kF32, large))) {
    constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(float);
    alignas(HWY_MAX_BYTES) float lanes[kLanes];
    alignas(HWY_MAX_BYTES) float r[kLanes];
    alignas(HWY_MAX_BYTES) uint32_t quadrants[kLanes];
    hn::Store(hn::IfThenElse(large, x, Const(kFastLimit)), kF32, lanes);
#pragma clang loop vectorize(disable) unroll(disable)
    for (size_t i = 0; i < kLanes; ++i) r[i] = ReduceLarge(lanes[i], quadrants[i]);
    result.r = hn::IfThenElse(large, hn::Load(kF32, r), result.r);
    result.quadrant = hn::IfThenElse(hn::RebindMask(kU32, large), hn::Load(kU32, quadrants), result.quadrant);
  }
  return result;
}

// sin and cos of |r| <= pi/4. CopySign: the polynomial gives sin(-0) = +0.
HWY_INLINE VF SinKernel(VF r) {
  const VF s = hn::Mul(r, r);
  const VF p = Poly(s, -1.66666552e-01f, 8.33218917e-03f, -1.95182918e-04f);
  return hn::CopySign(hn::MulAdd(hn::Mul(s, r), p, r), r);
}
HWY_INLINE VF CosKernel(VF r) {
  const VF s = hn::Mul(r, r);
  const VF p = Poly(s, 4.16666456e-02f, -1.38873095e-03f, 2.44323273e-05f);
  return hn::Add(hn::NegMulAdd(s, Const(0.5f), Const(1.0f)), hn::Mul(hn::Mul(s, s), p));
}

HWY_INLINE MF IsOdd(VU quadrant) {
  const VU one = hn::Set(kU32, 1);
  return hn::RebindMask(kF32, hn::Eq(hn::And(quadrant, one), one));
}

// +-sin(r) or +-cos(r) as the quadrant says.
HWY_INLINE VF SinOfQuadrant(VF r, VU quadrant) {
  const VF value = hn::IfThenElse(IsOdd(quadrant), CosKernel(r), SinKernel(r));
  const VU sign = hn::ShiftLeft<30>(hn::And(quadrant, hn::Set(kU32, 2)));
  return hn::Xor(value, hn::BitCast(kF32, sign));
}

}  // namespace

QUERN_INLINE(Vec, q_sin_f32)(Vec x) {
  const Reduced reduced = Reduce(FromRaw(x));
  return ToRaw(SinOfQuadrant(reduced.r, reduced.quadrant));
}

QUERN_INLINE(Vec, q_cos_f32)(Vec x) {
  const Reduced reduced = Reduce(FromRaw(x));
  return ToRaw(SinOfQuadrant(reduced.r, hn::Add(reduced.quadrant, hn::Set(kU32, 1))));
}

QUERN_INLINE(Vec, q_tan_f32)(Vec x) {
  const Reduced reduced = Reduce(FromRaw(x));
  const VF sine = SinKernel(reduced.r);
  const VF cosine = CosKernel(reduced.r);
  const MF odd = IsOdd(reduced.quadrant);
  return ToRaw(hn::Div(hn::IfThenElse(odd, cosine, sine), hn::IfThenElse(odd, hn::Neg(sine), cosine)));
}
