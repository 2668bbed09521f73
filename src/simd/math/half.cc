// Conversions between f32 and the 16-bit floats; a 16-bit float travels in the low half of a 32-bit lane, zero above
// it.
//
// To f32 they are exact; to 16 bits they round to nearest even, overflow to infinity and give subnormals. A NaN stays a
// NaN and becomes quiet. The steps on subnormals run on integers or on normal numbers, so flush-to-zero does not change
// them.
//   q_f16_to_f32(0x3c00) = 1, q_f32_to_f16(65520) = 0x7c00 (inf), q_f32_to_bf16(1) = 0x3f80
#include "simd/math/vector.h"

QUERN_INLINE(Vec, q_f16_to_f32)(VecU32 raw) {
  const VU half = FromRaw(raw);
  const VU magnitude = hn::And(half, hn::Set(kU32, 0x7fff));
  const VU rebias = hn::Set(kU32, 112u << 23);
  VU bits = hn::Add(hn::ShiftLeft<13>(magnitude), rebias);
  // Exponent 31 must become 255, which is another 112 away.
  bits = hn::Add(bits, hn::IfThenElseZero(hn::Gt(magnitude, hn::Set(kU32, 0x7bff)), rebias));
  bits = hn::Or(bits, hn::IfThenElseZero(hn::Gt(magnitude, hn::Set(kU32, 0x7c00)), hn::Set(kU32, 0x400000)));
  const VF subnormal = hn::Mul(hn::ConvertTo(kF32, hn::BitCast(kI32, magnitude)), Const(5.9604644775390625e-08f));
  const auto small = hn::Lt(magnitude, hn::Set(kU32, 0x0400));
  bits = hn::IfThenElse(small, hn::BitCast(kU32, subnormal), bits);
  const VU sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(kU32, 0x8000)));
  return ToRaw(hn::BitCast(kF32, hn::Or(bits, sign)));
}

QUERN_INLINE(VecU32, q_f32_to_f16)(Vec raw) {
  const VU input = hn::BitCast(kU32, FromRaw(raw));
  const VU magnitude = hn::And(input, hn::Set(kU32, 0x7fffffff));
  const VU odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(kU32, 1));
  const VU rounded = hn::Add(magnitude, hn::Add(odd, hn::Set(kU32, 0xfff)));
  VU half = hn::ShiftRight<13>(hn::Sub(rounded, hn::Set(kU32, 112u << 23)));
  // Below 2^-14 a half is a multiple of 2^-24, the unit in the last place of floats from 0.5 to 1: adding 0.5 rounds
  // there.
  const VU shifted = hn::BitCast(kU32, hn::Add(hn::BitCast(kF32, magnitude), Const(0.5f)));
  const auto small = hn::Lt(magnitude, hn::Set(kU32, 0x38800000));
  half = hn::IfThenElse(small, hn::Sub(shifted, hn::Set(kU32, 0x3f000000)), half);
  half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(kU32, 0x477fefff)), hn::Set(kU32, 0x7c00), half);  // from 65520 on
  const VU nan = hn::Or(hn::And(hn::ShiftRight<13>(magnitude), hn::Set(kU32, 0x3ff)), hn::Set(kU32, 0x7e00));
  half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(kU32, 0x7f800000)), nan, half);
  return ToRaw(hn::Or(half, hn::And(hn::ShiftRight<16>(input), hn::Set(kU32, 0x8000))));
}

QUERN_INLINE(Vec, q_bf16_to_f32)(VecU32 raw) { return ToRaw(hn::BitCast(kF32, hn::ShiftLeft<16>(FromRaw(raw)))); }

QUERN_INLINE(VecU32, q_f32_to_bf16)(Vec raw) {
  const VU bits = hn::BitCast(kU32, FromRaw(raw));
  const VU magnitude = hn::And(bits, hn::Set(kU32, 0x7fffffff));
  const VU odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(kU32, 1));
  const VU rounded = hn::Add(bits, hn::Add(odd, hn::Set(kU32, 0x7fff)));
  const VU nan = hn::Or(bits, hn::Set(kU32, 0x400000));
  const auto is_nan = hn::Gt(magnitude, hn::Set(kU32, 0x7f800000));
  return ToRaw(hn::ShiftRight<16>(hn::IfThenElse(is_nan, nan, rounded)));
}
