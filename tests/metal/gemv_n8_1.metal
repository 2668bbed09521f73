// Compile as Metal 3.1 or later, with fast math off.
#include <metal_stdlib>
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#else
#pragma clang fp contract(off)
#endif
using namespace metal;

static inline float read_float(device const uchar* at) { return *(device const float*)at; }
static inline float value_n8_1(int code, float d, float added) {
  const float product = d * code;
  return product + added;
}
static inline float decode_n8_1(device const uchar* row, uint j) {
  device const uchar* const block = row + j / 32U * 40U;
  const int i = int(j % 32U);
  const int byte0 = block[8 + i];
  const int code = byte0;
  const float d = read_float(block);
  const float added = read_float(block + 4);
  return value_n8_1(code, d, added);
}

[[kernel, max_total_threads_per_threadgroup(32)]] void gemv_n8_1(
    device const uchar* w [[buffer(0)]],
    device const float* x [[buffer(1)]],
    device float* y [[buffer(2)]],
    constant long* symbols [[buffer(3)]],
    uint chunk_index [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  const int thread_id = int(thread_index);
  const int N = int(symbols[0]);
  const int n = int(chunk_index);
  {
    float acc = 0.0f;
    for (int k = thread_id * 8; k < 768; k += 256) {
      #pragma unroll
      for (int u = 0; u < 8; ++u) {
        acc = fma(decode_n8_1(w + n * 960, uint(k + u)), x[k + u], acc);
      }
    }
    const float s0 = acc;
    const float o0 = simd_shuffle_xor(s0, ushort(16));
    const float s1 = s0 + o0;
    const float o1 = simd_shuffle_xor(s1, ushort(8));
    const float s2 = s1 + o1;
    const float o2 = simd_shuffle_xor(s2, ushort(4));
    const float s3 = s2 + o2;
    const float o3 = simd_shuffle_xor(s3, ushort(2));
    const float s4 = s3 + o3;
    const float o4 = simd_shuffle_xor(s4, ushort(1));
    const float s5 = s4 + o4;
    if (thread_id == 0) {
      y[n] = s5;
    }
  }
}
