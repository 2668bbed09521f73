// The frame of the qk_dot_q* tiles: m rows of activations, a few at a time.
#pragma once

#include "simd/tiles/quant_layout.h"
#include "simd/tiles/quant_vector.h"

namespace quern::simd {
namespace {

// Rows of activations that are multiplied by one decoded block: their accumulators have to stay in registers.
constexpr int kDotRows = kRegisters == 32 ? 8 : 4;

// The operands of a call, typed.
struct DotCall {
  float* y;
  int64_t y_ld;
  const uint8_t* w;
  int64_t w_stride;
  const uint8_t* x;
  int64_t x_stride;
  int64_t n, k, ahead;
};

// Calls f.operator()<rows>(call) for groups of at most kDotRows of the m rows.
template <class F>
HWY_INLINE void ForDotRows(DotCall call, int64_t m, const F& f) {
  while (m > 0) {
    const int64_t take = m < kDotRows ? m : kDotRows;
    DispatchRows<kDotRows>(take, [&]<int M>() { f.template operator()<M>(call); });
    m -= take;
    call.y += take * call.y_ld;
    call.x += take * call.x_stride;
  }
}

}  // namespace
}  // namespace quern::simd
