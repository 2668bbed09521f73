// Functions in pieces, for levels with AVX-512: a polynomial per interval, its coefficients read by lanes from tables
// that stay in registers. Several times as fast as one formula for all arguments.
#pragma once

#include "simd/math/vector.h"

#if HWY_TARGET <= HWY_AVX3

namespace {

// f(x) = value + u (c[0] + u (c[1] + ...)), u = x - node. The node is a float where f is nearly one too, so that the
// value brings no error with it. Made by tools/fit_math.py.
struct Pieces {
  alignas(64) float node[32], value[32], c[4][32];
};

HWY_INLINE VF LookUp(const float (&table)[32], VI index) {
  return VF{_mm512_permutex2var_ps(_mm512_load_ps(table), index.raw, _mm512_load_ps(table + 16))};
}

// The value of the piece at x, which `value` takes the place of.
HWY_INLINE VF PieceAt(const Pieces& pieces, VI index, VF x, VF value) {
  const VF u = hn::Sub(x, LookUp(pieces.node, index));
  VF p = LookUp(pieces.c[3], index);
  for (int k = 2; k >= 0; --k) p = hn::MulAdd(p, u, LookUp(pieces.c[k], index));
  return hn::MulAdd(p, u, value);
}

}  // namespace

#endif
