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

[[kernel, max_total_threads_per_threadgroup(128)]] void product_f16(
    device const half* a [[buffer(0)]],
    device const half* b [[buffer(1)]],
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
  const int K = int(symbols[2]);
  const int bm = int(chunk_index) / ((N + 63) / 64) * 64;
  const int bn = int(chunk_index) % ((N + 63) / 64) * 64;
  {
    const int w = thread_id / 32;
    simdgroup_float8x8 acc[16];
    #pragma unroll
    for (int part = 0; part < 16; ++part) {
      acc[part] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
    for (int k0 = 0; k0 < K; k0 += 32) {
      {
        for (int copy_number = thread_id; copy_number < 2048; copy_number += 128) {
          const int copy_at1 = copy_number % 32;
          const int copy_rest1 = copy_number / 32;
          sa[copy_rest1 * 40 + copy_at1] = ((k0 + copy_at1 < K) & (bm + copy_rest1 < M)) ? a[(bm + copy_rest1) * K + (k0 + copy_at1)] : half(0);
        }
      }
      {
        for (int copy_number = thread_id; copy_number < 2048; copy_number += 128) {
          const int copy_at1 = copy_number % 32;
          const int copy_rest1 = copy_number / 32;
          sb[copy_rest1 * 40 + copy_at1] = ((k0 + copy_at1 < K) & (bn + copy_rest1 < N)) ? b[(bn + copy_rest1) * K + (k0 + copy_at1)] : half(0);
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      {
        const int x_start = w / 2 * 32 * 40;
        const int w_start = w % 2 * 32 * 40;
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
        const int ti = part / 4 * 8 + e / 8;
        const int tj = part % 4 * 8 + e % 8;
        if (ti < min_i32(32, M - bm - w / 2 * 32) && tj < min_i32(32, N - bn - w % 2 * 32)) {
          const int i = bm + w / 2 * 32 + ti;
          const int j = bn + w % 2 * 32 + tj;
          c[i * N + j] = (stage + thread_id / 32 * 64)[e];
        }
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }
  }
}
