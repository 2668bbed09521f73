// q_rsqrt_f32: 1 / sqrt(x), with the exact square root and division rather than the hardware's 12-bit estimate.
//
// Both steps round once: within 1.5 ULP. rsqrt(+-0) = +-inf, rsqrt(inf) = 0, rsqrt(x < 0) = NaN.
#include "simd/math/vector.h"

QUERN_INLINE(Vec, q_rsqrt_f32)(Vec x) { return ToRaw(hn::Div(Const(1.0f), hn::Sqrt(FromRaw(x)))); }
