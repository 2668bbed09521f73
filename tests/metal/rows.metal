// Compile as Metal 3.1 or later, with fast math off.
#include <metal_stdlib>
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#else
#pragma clang fp contract(off)
#endif
using namespace metal;

static inline float rsqrt_f32(float x) { return 1.0f / precise::sqrt(x); }

[[kernel, max_total_threads_per_threadgroup(256)]] void rows(
    device const float* x [[buffer(0)]],
    device const float* g [[buffer(1)]],
    device float* y [[buffer(2)]],
    constant long* symbols [[buffer(3)]],
    uint chunk_index [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup float part0[8];
  const int thread_id = int(thread_index);
  const int M = int(symbols[0]);
  const int C = int(symbols[1]);
  const int i0 = int(chunk_index);
  {
    float own0 = 0.0f;
    for (int c0 = thread_id; c0 < C; c0 += 256) {
      own0 = fma(x[i0 * C + c0], x[i0 * C + c0], own0);
    }
    const float from0_16 = simd_shuffle_xor(own0, ushort(16));
    own0 = own0 + from0_16;
    const float from0_8 = simd_shuffle_xor(own0, ushort(8));
    own0 = own0 + from0_8;
    const float from0_4 = simd_shuffle_xor(own0, ushort(4));
    own0 = own0 + from0_4;
    const float from0_2 = simd_shuffle_xor(own0, ushort(2));
    own0 = own0 + from0_2;
    const float from0_1 = simd_shuffle_xor(own0, ushort(1));
    own0 = own0 + from0_1;
    if (thread_id % 32 == 0) {
      part0[thread_id / 32] = own0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float all0 = part0[0] + part0[1] + (part0[2] + part0[3]) + (part0[4] + part0[5] + (part0[6] + part0[7]));
    const float r0 = all0 / float(C);
    const float s0 = rsqrt_f32(r0 + 1e-05f);
    for (int c = thread_id; c < C; c += 256) {
      y[i0 * C + c] = x[i0 * C + c] * s0 * g[c];
    }
  }
}
