// Compile as Metal 3.1 or later, with fast math off.
#include <metal_stdlib>
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#else
#pragma clang fp contract(off)
#endif
using namespace metal;


[[kernel, max_total_threads_per_threadgroup(256)]] void spread(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    constant long* symbols [[buffer(2)]],
    uint chunk_index [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup float part0[8];
  threadgroup float part1[8];
  const int thread_id = int(thread_index);
  const int M = int(symbols[0]);
  const int C = int(symbols[1]);
  const int i = int(chunk_index);
  {
    float own0 = 0.0f;
    for (int c0 = thread_id; c0 < C; c0 += 256) {
      own0 = own0 + x[i * C + c0];
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
    const float m0 = all0 / float(C);
    float own1 = 0.0f;
    for (int c0 = thread_id; c0 < C; c0 += 256) {
      const float d = x[i * C + c0] - m0;
      const float q = d * d;
      own1 = own1 + fma(q, q, q);
    }
    const float from1_16 = simd_shuffle_xor(own1, ushort(16));
    own1 = own1 + from1_16;
    const float from1_8 = simd_shuffle_xor(own1, ushort(8));
    own1 = own1 + from1_8;
    const float from1_4 = simd_shuffle_xor(own1, ushort(4));
    own1 = own1 + from1_4;
    const float from1_2 = simd_shuffle_xor(own1, ushort(2));
    own1 = own1 + from1_2;
    const float from1_1 = simd_shuffle_xor(own1, ushort(1));
    own1 = own1 + from1_1;
    if (thread_id % 32 == 0) {
      part1[thread_id / 32] = own1;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float all1 = part1[0] + part1[1] + (part1[2] + part1[3]) + (part1[4] + part1[5] + (part1[6] + part1[7]));
    const float m1 = all1;
    for (int c = thread_id; c < C; c += 256) {
      float sum = 0.0f;
      for (int k = 1; k < 4; ++k) {
        const float d = x[i * C + c] * float(k);
        sum += d * d + 1.0f;
      }
      y[i * C + c] = m1 / sum;
    }
  }
}
