// Compile as Metal 3.1 or later, with fast math off.
#include <metal_stdlib>
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#else
#pragma clang fp contract(off)
#endif
using namespace metal;

static inline int min_i32(int a, int b) { return b < a ? b : a; }
static inline float sigmoid_f32(float x) { return 1.0f / (1.0f + precise::exp(-x)); }

[[kernel, max_total_threads_per_threadgroup(256)]] void map(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    constant long* symbols [[buffer(2)]],
    uint chunk_index [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  const int thread_id = int(thread_index);
  const int S = int(symbols[0]);
  const int c0 = int(chunk_index) * 1024;
  {
    for (int i = c0 + thread_id, i_end = min_i32(c0 + 1024, S); i < i_end; i += 256) {
      y[i] = x[i] * sigmoid_f32(x[i]);
    }
  }
}
