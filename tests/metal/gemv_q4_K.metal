// Compile as Metal 3.1 or later, with fast math off.
#include <metal_stdlib>
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#else
#pragma clang fp contract(off)
#endif
using namespace metal;

static inline float read_half(device const uchar* at) { return float(*(device const half*)at); }
static inline float six_bits(device const uchar* block, int code, uint sub) {
  // f16 d, f16 dmin, 12 bytes of 6-bit scales and minimums of 8 sub-blocks
  device const uchar* const packed = block + 4;
  const int first = packed[sub], second = packed[sub + 4U], high = packed[sub % 4U] >> 6;
  const int late = -int(sub / 4U);  // all bits for the last four; branches would keep neighbours from sharing the loads
  const int scale = (first & 63 & ~late) | (((second & 15) | high << 4) & late);
  const int minimum = (second & 63 & ~late) | ((second >> 4 | first >> 6 << 4) & late);
  const float product = read_half(block) * float(scale) * float(code), lowest = read_half(block + 2) * float(minimum);
  return product - lowest;
}
static inline float decode_q4_K(device const uchar* row, uint j) {
  // 4 chunks of 32 bytes: nibbles of two sub-blocks of 32 in each
  device const uchar* const block = row + j / 256U * 144U;
  const uint sub = j / 32U % 8U;
  const int byte = block[16U + sub / 2U * 32U + j % 32U];
  return six_bits(block, byte >> (sub % 2U * 4U) & 15, sub);
}

[[kernel, max_total_threads_per_threadgroup(32)]] void gemv_q4_K(
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
        acc = fma(decode_q4_K(w + n * 432, uint(k + u)), x[k + u], acc);
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
