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
        const int live = min_i32(64, M - bm);
        const int live_2 = min_i32(16, K - k0);
        for (int e = thread_id; e < 1024; e += 256) {
          const int rest = e / 16;
          const int at = e % 16;
          sa[rest * 17 + at] = at < live_2 && rest < live ? a[(bm + rest) * K + (k0 + at)] : float(0);
        }
      }
      {
        const int live = min_i32(64, N - bn);
        const int live_2 = min_i32(16, K - k0);
        for (int e = thread_id; e < 1024; e += 256) {
          const int rest = e / 16;
          const int at = e % 16;
          sb[rest * 17 + at] = at < live_2 && rest < live ? b[(bn + rest) * K + (k0 + at)] : float(0);
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
