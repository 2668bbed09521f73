// Compile as Metal 3.1 or later, with fast math off.
#include <metal_stdlib>
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#else
#pragma clang fp contract(off)
#endif
using namespace metal;

static inline float max_f32(float a, float b) { return a != a ? a : b != b ? b : a < b ? b : a; }

[[kernel, max_total_threads_per_threadgroup(160)]] void softmax(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    constant long* symbols [[buffer(2)]],
    uint chunk_index [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup float part0[5];
  threadgroup float row2[131];
  threadgroup float part1[5];
  const int thread_id = int(thread_index);
  const int M = int(symbols[0]);
  const int i0 = int(chunk_index);
  {
    float own0 = -INFINITY;
    for (int c0 = thread_id; c0 < 131; c0 += 160) {
      own0 = max_f32(own0, x[i0 * 131 + c0]);
    }
    const float from0_16 = simd_shuffle_xor(own0, ushort(16));
    own0 = max_f32(own0, from0_16);
    const float from0_8 = simd_shuffle_xor(own0, ushort(8));
    own0 = max_f32(own0, from0_8);
    const float from0_4 = simd_shuffle_xor(own0, ushort(4));
    own0 = max_f32(own0, from0_4);
    const float from0_2 = simd_shuffle_xor(own0, ushort(2));
    own0 = max_f32(own0, from0_2);
    const float from0_1 = simd_shuffle_xor(own0, ushort(1));
    own0 = max_f32(own0, from0_1);
    if (thread_id % 32 == 0) {
      part0[thread_id / 32] = own0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float all0 = max_f32(max_f32(max_f32(part0[0], part0[1]), max_f32(part0[2], part0[3])), part0[4]);
    const float r0 = all0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int c2 = thread_id; c2 < 131; c2 += 160) {
      row2[c2] = precise::exp(x[i0 * 131 + c2] - r0);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float own1 = 0.0f;
    for (int c1 = thread_id; c1 < 131; c1 += 160) {
      own1 = own1 + row2[c1];
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
    const float all1 = part1[0] + part1[1] + (part1[2] + part1[3]) + part1[4];
    const float r1 = all1;
    for (int c = thread_id; c < 131; c += 160) {
      y[i0 * 131 + c] = row2[130 - c] / r1;
    }
  }
}
