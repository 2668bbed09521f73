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
static inline float value_q4_K(int code, int scale, int minimum, float d, float dmin) {
  const float product = d * scale * code, least = dmin * minimum;
  return product - least;
}
static inline float decode_q4_K(device const uchar* row, uint j) {
  device const uchar* const block = row + j / 256U * 144U;
  const int i = int(j % 256U);
  const int byte0 = block[4 + i / 32 % 4];
  const int byte1 = block[12 + i / 32 % 4];
  const int byte2 = block[8 + i / 32 % 4];
  const int byte3 = block[16 + i / 64 * 32 + i % 32];
  const int code = (byte3 >> i / 32 % 2 * 4) & 15;
  const int scale = (i / 32 < 4) ? (byte0 & 63) : ((byte1 & 15) | ((byte0 >> 6) << 4));
  const int minimum = (i / 32 < 4) ? (byte2 & 63) : ((byte1 >> 4) | ((byte2 >> 6) << 4));
  const float d = read_half(block);
  const float dmin = read_half(block + 2);
  return value_q4_K(code, scale, minimum, d, dmin);
}
static inline int min_i32(int a, int b) { return b < a ? b : a; }

[[kernel, max_total_threads_per_threadgroup(128)]] void product_q4_K_f16(
    device const float* x [[buffer(0)]],
    device const uchar* w [[buffer(1)]],
    device float* c [[buffer(2)]],
    constant long* symbols [[buffer(3)]],
    uint chunk_index [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup half sa[2560];
  threadgroup half sb[2560];
  threadgroup float stage[256];
  const int thread_id = int(thread_index);
  const int M = int(symbols[0]);
  const int N = int(symbols[1]);
  const int bm = int(chunk_index) / ((N + 63) / 64) * 64;
  const int bn = int(chunk_index) % ((N + 63) / 64) * 64;
  {
    const int w0 = thread_id / 32;
    simdgroup_float8x8 acc[16];
    #pragma unroll
    for (int part = 0; part < 16; ++part) {
      acc[part] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
    for (int k0 = 0; k0 < 512; k0 += 32) {
      {
        for (int copy_number = thread_id; copy_number < 2048; copy_number += 128) {
          const int copy_at1 = copy_number % 32;
          const int copy_rest1 = copy_number / 32;
          sa[copy_rest1 * 40 + copy_at1] = (bm + copy_rest1 < M) ? half(x[(bm + copy_rest1) * 512 + (k0 + copy_at1)]) : half(0);
        }
      }
      {
        #pragma unroll
        for (int copy_n = 0; copy_n < 2; ++copy_n) {
          const int copy_number = thread_id + copy_n * 128;
          const int copy_at1 = copy_number % 4;
          const int copy_rest1 = copy_number / 4;
          const int copy_first1 = copy_at1 * 8;
          if (bn + copy_rest1 < N) {
            #pragma unroll
            for (int u = 0; u < 8; ++u) {
              sb[copy_rest1 * 40 + (copy_first1 + u)] = half(decode_q4_K(w + (bn + copy_rest1) * 288, uint(k0 + copy_first1 + u)));
            }
          } else {
            #pragma unroll
            for (int u = 0; u < 8; ++u) {
              sb[copy_rest1 * 40 + (copy_first1 + u)] = half(0);
            }
          }
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      {
        const int x_start = w0 / 2 * 32 * 40;
        const int w_start = w0 % 2 * 32 * 40;
        #pragma unroll
        for (int k = 0; k < 32; k += 8) {
          simdgroup_half8x8 left[4];
          #pragma unroll
          for (int i = 0; i < 4; ++i) {
            simdgroup_load(left[i], sa + x_start + i * 320 + k, 40);
          }
          simdgroup_half8x8 right[4];
          #pragma unroll
          for (int i = 0; i < 4; ++i) {
            simdgroup_load(right[i], sb + w_start + i * 320 + k, 40, ulong2(0, 0), true);
          }
          #pragma unroll
          for (int m = 0; m < 4; ++m) {
            #pragma unroll
            for (int n = 0; n < 4; ++n) {
              simdgroup_multiply_accumulate(acc[m * 4 + n], left[m], right[n], acc[m * 4 + n]);
            }
          }
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    #pragma unroll
    for (int part = 0; part < 16; ++part) {
      simdgroup_store(acc[part], stage + thread_id / 32 * 64, 8);
      simdgroup_barrier(mem_flags::mem_threadgroup);
      for (int e = thread_id % 32; e < 64; e += 32) {
        const int i = part / 4 * 8 + e / 8;
        const int j = part % 4 * 8 + e % 8;
        if (i < min_i32(32, M - bm - w0 / 2 * 32) && j < min_i32(32, N - bn - w0 % 2 * 32)) {
          c[(bm + w0 / 2 * 32 + i) * N + (bn + w0 % 2 * 32 + j)] = (stage + thread_id / 32 * 64)[e];
        }
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }
  }
}
