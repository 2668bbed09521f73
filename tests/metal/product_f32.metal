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

[[kernel, max_total_threads_per_threadgroup(256)]] void product_f32(
    device const float* a [[buffer(0)]],
    device const float* b [[buffer(1)]],
    device float* c [[buffer(2)]],
    constant long* symbols [[buffer(3)]],
    uint chunk_index [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup float sa[1088];
  threadgroup float sb[1088];
  const int thread_id = int(thread_index);
  const int M = int(symbols[0]);
  const int N = int(symbols[1]);
  const int K = int(symbols[2]);
  const int bm = int(chunk_index) / ((N + 63) / 64) * 64;
  const int bn = int(chunk_index) % ((N + 63) / 64) * 64;
  {
    float acc[16];
    #pragma unroll
    for (int part = 0; part < 16; ++part) {
      acc[part] = 0.0f;
    }
    for (int k0 = 0; k0 < K; k0 += 16) {
      {
        #pragma unroll
        for (int copy_n = 0; copy_n < 4; ++copy_n) {
          const int copy_number = thread_id + copy_n * 256;
          const int copy_at1 = copy_number % 16;
          const int copy_rest1 = copy_number / 16;
          sa[copy_rest1 * 17 + copy_at1] = ((k0 + copy_at1 < K) & (bm + copy_rest1 < M)) ? a[(bm + copy_rest1) * K + (k0 + copy_at1)] : float(0);
        }
      }
      {
        #pragma unroll
        for (int copy_n = 0; copy_n < 4; ++copy_n) {
          const int copy_number = thread_id + copy_n * 256;
          const int copy_at1 = copy_number % 16;
          const int copy_rest1 = copy_number / 16;
          sb[copy_rest1 * 17 + copy_at1] = ((k0 + copy_at1 < K) & (bn + copy_rest1 < N)) ? b[(bn + copy_rest1) * K + (k0 + copy_at1)] : float(0);
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (int k = 0; k < 16; ++k) {
        #pragma unroll
        for (int ti = 0; ti < 4; ++ti) {
          #pragma unroll
          for (int tj = 0; tj < 4; ++tj) {
            acc[ti * 4 + tj] = fma(sa[(thread_id / 16 * 4 + ti) * 17 + k], sb[(thread_id % 16 * 4 + tj) * 17 + k], acc[ti * 4 + tj]);
          }
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    #pragma unroll
    for (int ti = 0; ti < 4; ++ti) {
      #pragma unroll
      for (int tj = 0; tj < 4; ++tj) {
        if (ti < min_i32(4, M - bm - thread_id / 16 * 4) && tj < min_i32(4, N - bn - thread_id % 16 * 4)) {
          const int i = bm + thread_id / 16 * 4 + ti;
          const int j = bn + thread_id % 16 * 4 + tj;
          c[i * N + j] = acc[ti * 4 + tj];
        }
      }
    }
  }
}
