// Doubles as powers of two and fractions, which logarithms begin with.
#pragma once

#include "simd/math/double.h"

namespace {

// x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); f is exact.
struct SplitF64 {
  VD k, f;
};

// Of positive finite x, subnormal too; of others both parts are meaningless.
HWY_INLINE SplitF64 SplitExponent(VD x) {
  const auto subnormal = hn::Lt(x, ConstF64(0x1p-1022));
  const VD scaled = hn::IfThenElse(subnormal, hn::Mul(x, ConstF64(0x1p54)), x);
  const uint64_t one = 0x3ff0000000000000u, root_half = 0x3fe6a09e667f3bcdu;
  const auto moved = hn::Add(hn::BitCast(kU64, scaled), hn::Set(kU64, one - root_half));
  // A whole number below 2^52 put into the mantissa of 2^52 becomes a double without an instruction for that.
  const VD biased = hn::BitCast(kF64, hn::Or(hn::ShiftRight<52>(moved), hn::Set(kU64, 0x4330000000000000u)));
  const VD k = hn::Sub(biased, hn::IfThenElse(subnormal, ConstF64(0x1p52 + 1023 + 54), ConstF64(0x1p52 + 1023)));
  const auto mantissa = hn::Add(hn::And(moved, hn::Set(kU64, 0x000fffffffffffffu)), hn::Set(kU64, root_half));
  return {k, hn::Sub(hn::BitCast(kF64, mantissa), ConstF64(1))};
}

}  // namespace
