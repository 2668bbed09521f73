// q_sin_f64, q_cos_f64, q_tan_f64, for every double.
//
// |x| = q pi/2 + r with |r| <= pi/4: up to 2^20 by four subtractions, of products the first three of which are exact;
// beyond that by Payne and Hanek's method on integers, one lane at a time, since such arguments are rare. sin and tan
// keep the sign of zero; infinities give NaN.
#include "simd/math/double.h"

namespace {

using VU64 = hn::Vec<U64>;

struct Reduced {
  VD r;
  VU64 quadrant;  // only its low two bits mean anything
};

constexpr double kFastLimit = 1048576.0;
// pi/2 in parts: three of 33 bits, whose multiples by 20 bits are exact, and the rest.
constexpr double kHalfPi[] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69, 0x1.b839a252049c1p-104};

// 64 zeros, then the bits of 2/pi after the binary point.
constexpr uint64_t kTwoOverPi[] = {0,
                                   0xa2f9836e4e441529,
                                   0xfc2757d1f534ddc0,
                                   0xdb6295993c439041,
                                   0xfe5163abdebbc561,
                                   0xb7246e3a424dd2e0,
                                   0x06492eea09d1921c,
                                   0xfe1deb1cb129a73e,
                                   0xe88235f52ebb4484,
                                   0xe99c7026b45f7e41,
                                   0x3991d639835339f4,
                                   0x9c845f8bbdf9283b,
                                   0x1ff897ffde05980f,
                                   0xef2f118b5a0a6d1f,
                                   0x6d367ecf27cb09b7,
                                   0x4f463f669e5fea2d,
                                   0x7527bac7ebe5f17b,
                                   0x3d0739f78a5292ea,
                                   0x6bfb5fb11f8d5d08,
                                   0x56033046fc7b6bab};

// Payne-Hanek for one finite x = mantissa 2^shift >= 2^20: of the bits of 2/pi a window of 192 matters, which starts at
// bit shift + 62 of the table; its bits as an integer times mantissa, modulo 2^192, are the angle modulo a turn in
// units of 2^-190 quadrants. The least fraction that a double leaves is about 2^-62.
HWY_INLINE double ReduceLarge(double x, uint64_t& quadrant) {
  using Wide = unsigned __int128;
  const uint64_t bits = __builtin_bit_cast(uint64_t, x);
  const uint64_t mantissa = (bits & 0xfffffffffffffu) | 0x10000000000000u;
  const uint64_t start = ((bits >> 52) & 0x7ff) - 1075 + 62;  // 30 to 1033
  const uint64_t* words = kTwoOverPi + start / 64;
  const uint64_t part = start % 64;
  const auto window = [&](int k) {
    return static_cast<uint64_t>(((static_cast<Wide>(words[k]) << 64) | words[k + 1]) >> (64 - part));
  };
  const Wide p2 = static_cast<Wide>(mantissa) * window(2);
  const Wide p1 = static_cast<Wide>(mantissa) * window(1) + static_cast<uint64_t>(p2 >> 64);
  const Wide p0 = static_cast<Wide>(mantissa) * window(0) + static_cast<uint64_t>(p1 >> 64);
  const uint64_t high = static_cast<uint64_t>(p0), middle = static_cast<uint64_t>(p1);
  Wide fraction =
      (static_cast<Wide>(high) << 66) | (static_cast<Wide>(middle) << 2) | (static_cast<uint64_t>(p2) >> 62);
  const bool negative = (high >> 61 & 1) != 0;  // the nearest quadrant, so that |r| <= pi/4
  quadrant = (high >> 62) + (negative ? 1 : 0);
  if (negative) fraction = -fraction;
  const uint64_t top = static_cast<uint64_t>(fraction >> 64);
  const int zeros = top != 0 ? __builtin_clzll(top) : 64;
  fraction <<= zeros;
  // Twice 53 bits, times pi/2 in two parts.
  const auto digits = [&](int from) {
    return static_cast<double>(static_cast<int64_t>(static_cast<uint64_t>(fraction >> from) & 0x1fffffffffffffu));
  };
  const double first = digits(75), rest = digits(22) * 0x1p-53;
  const double unit = __builtin_bit_cast(double, static_cast<uint64_t>(1023 - 53 - zeros) << 52);
  const double half_pi = 0x1.921fb54442d18p+0;
  const double r = (first * half_pi + (first * 0x1.1a62633145c07p-54 + rest * half_pi)) * unit;
  return negative ? -r : r;
}

// a - b, and what its rounding takes.
HWY_INLINE VD Difference(VD a, VD b, VD& lost) {
  const VD difference = hn::Sub(a, b), taken = hn::Sub(difference, a);
  lost = hn::Add(lost, hn::Sub(hn::Sub(a, hn::Sub(difference, taken)), hn::Add(b, taken)));
  return difference;
}

HWY_INLINE Reduced Reduce(VD x) {
  const VD shift = ConstF64(0x1.8p52);  // beside it the low bits of a double count units
  const VD shifted = hn::Add(hn::Mul(x, ConstF64(0x1.45f306dc9c883p-1)), shift), q = hn::Sub(shifted, shift);
  VD lost = hn::Zero(kF64);
  VD r = hn::Sub(x, hn::Mul(q, ConstF64(kHalfPi[0])));
  r = Difference(r, hn::Mul(q, ConstF64(kHalfPi[1])), lost);
  r = Difference(r, hn::Mul(q, ConstF64(kHalfPi[2])), lost);
  r = hn::Add(r, hn::Sub(lost, hn::Mul(q, ConstF64(kHalfPi[3]))));
  Reduced result = {r, hn::BitCast(kU64, shifted)};

  const auto finite = hn::Lt(x, hn::BitCast(kF64, hn::Set(kU64, 0x7ff0000000000000u)));
  const auto large = hn::And(finite, hn::Ge(x, ConstF64(kFastLimit)));
  result.r = hn::IfThenElse(finite, result.r, hn::BitCast(kF64, hn::Set(kU64, 0x7ff8000000000000u)));
  if (HWY_UNLIKELY(!hn::AllFalse(kF64, large))) {
    constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(double);
    alignas(HWY_MAX_BYTES) double lanes[kLanes];
    alignas(HWY_MAX_BYTES) double reduced[kLanes];
    alignas(HWY_MAX_BYTES) uint64_t quadrants[kLanes];
    hn::Store(hn::IfThenElse(large, x, ConstF64(kFastLimit)), kF64, lanes);
#pragma clang loop vectorize(disable) unroll(disable)
    for (size_t i = 0; i < kLanes; ++i) reduced[i] = ReduceLarge(lanes[i], quadrants[i]);
    result.r = hn::IfThenElse(large, hn::Load(kF64, reduced), result.r);
    result.quadrant = hn::IfThenElse(hn::RebindMask(kU64, large), hn::Load(kU64, quadrants), result.quadrant);
  }
  return result;
}

// sin and cos of |r| <= pi/4.
HWY_INLINE VD SinKernel(VD r) {
  const VD s = hn::Mul(r, r);
  const VD p = Poly(s, -0.16666666666666665, 0.0083333333333309473, -0.00019841269836756773, 2.7557316101617874e-6,
                    -2.5051131650235181e-8, 1.5918115263265975e-10);
  return hn::MulAdd(hn::Mul(s, r), p, r);
}
HWY_INLINE VD CosKernel(VD r) {
  const VD s = hn::Mul(r, r), half = hn::Mul(s, ConstF64(0.5)), one = ConstF64(1);
  const VD p = Poly(s, 0.041666666666666665, -0.0013888888888887396, 2.4801587298764561e-5, -2.7557317271145146e-7,
                    2.0876146146558612e-9, -1.1382623647474604e-11);
  const VD rounded = hn::Sub(one, half);
  return hn::Add(rounded, hn::MulAdd(hn::Mul(s, s), p, hn::Sub(hn::Sub(one, rounded), half)));
}

HWY_INLINE auto IsOdd(VU64 quadrant) {
  const VU64 one = hn::Set(kU64, 1);
  return hn::RebindMask(kF64, hn::Eq(hn::And(quadrant, one), one));
}

// +-sin(r) or +-cos(r) as the quadrant says.
HWY_INLINE VD SinOfQuadrant(VD r, VU64 quadrant) {
  const VD value = hn::IfThenElse(IsOdd(quadrant), CosKernel(r), SinKernel(r));
  return hn::Xor(value, hn::BitCast(kF64, hn::ShiftLeft<62>(hn::And(quadrant, hn::Set(kU64, 2)))));
}

HWY_INLINE VD SignOf(VD x) { return hn::And(x, hn::BitCast(kF64, hn::Set(kU64, 0x8000000000000000u))); }

}  // namespace

QUERN_INLINE(VecF64, q_sin_f64)(VecF64 raw) {
  const VD x = FromRaw(raw);
  const Reduced reduced = Reduce(hn::Abs(x));
  return ToRaw(hn::Xor(SinOfQuadrant(reduced.r, reduced.quadrant), SignOf(x)));
}

QUERN_INLINE(VecF64, q_cos_f64)(VecF64 raw) {
  const Reduced reduced = Reduce(hn::Abs(FromRaw(raw)));
  return ToRaw(SinOfQuadrant(reduced.r, hn::Add(reduced.quadrant, hn::Set(kU64, 1))));
}

QUERN_INLINE(VecF64, q_tan_f64)(VecF64 raw) {
  const VD x = FromRaw(raw);
  const Reduced reduced = Reduce(hn::Abs(x));
  const VD sine = SinKernel(reduced.r), cosine = CosKernel(reduced.r);
  const auto odd = IsOdd(reduced.quadrant);
  const VD value = hn::Div(hn::IfThenElse(odd, cosine, sine), hn::IfThenElse(odd, hn::Neg(sine), cosine));
  return ToRaw(hn::Xor(value, SignOf(x)));
}
