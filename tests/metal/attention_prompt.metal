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
static inline int max_i32(int a, int b) { return a < b ? b : a; }
static inline float max_f32(float a, float b) { return a != a ? a : b != b ? b : a < b ? b : a; }

[[kernel, max_total_threads_per_threadgroup(256)]] void attention_prompt(
    device const float* x0 [[buffer(0)]],
    device float* y0 [[buffer(1)]],
    device const half* x1 [[buffer(2)]],
    device const half* x2 [[buffer(3)]],
    constant long* symbols [[buffer(4)]],
    uint chunk_index [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup int lo[32];
  threadgroup int hi[32];
  threadgroup float o[512];
  threadgroup float m[32];
  threadgroup float l[32];
  threadgroup float sc_3[2048];
  threadgroup float sh_3[32];
  threadgroup float tops_3[32];
  threadgroup float sums_3[32];
  const int thread_id = int(thread_index);
  const int P = int(symbols[0]);
  const int S = int(symbols[1]);
  const int h = int(chunk_index) / ((S + 31) / 32);
  const int r0 = int(chunk_index) % ((S + 31) / 32) * 32;
  {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int fi_0 = thread_id; fi_0 < 32; fi_0 += 256) {
      l[fi_0] = 0.0f;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int fi_1 = thread_id; fi_1 < 32; fi_1 += 256) {
      m[fi_1] = -INFINITY;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int fi_2 = thread_id / 16; fi_2 < 32; fi_2 += 16) {
      for (int fc_2 = thread_id % 16; fc_2 < 16; fc_2 += 16) {
        o[fi_2 * 16 + fc_2] = 0.0f;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int kt = 0, kt_end = min_i32(P + S, r0 + P + 32); kt < kt_end; kt += 64) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (int i = thread_id; i < 32; i += 256) {
        lo[i] = int(0);
        hi[i] = int(max_i32(0, min_i32(min_i32(P + S - kt, r0 + i + P + 1 - kt), 64)));
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // [Attention]
      const int v0 = h / 2;
      // [Attention]
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // [Attention]
      for (int i_3 = thread_id / 64; i_3 < 32; i_3 += 4) {
        for (int j_3 = thread_id % 64; j_3 < 64; j_3 += 64) {
          float s_3 = -INFINITY;
          if (((int(lo[min_i32(i_3, 31)]) <= j_3) & (j_3 < int(hi[min_i32(i_3, 31)]))) & (i_3 < min_i32(min_i32(32, S - r0), S - r0))) {
            float sum = 0.0f;
            for (int c_3 = 0; c_3 < 16; ++c_3) {
              sum = fma(x0[(r0 + min_i32(i_3, min_i32(min_i32(32, S - r0), S - r0) - 1)) * 64 + h * 16 + c_3], float(x1[min_i32(kt + j_3, P + S - 1) * 32 + v0 * 16 + c_3]), sum);
            }
            s_3 = 0.25f * sum;
          }
          sc_3[i_3 * 64 + j_3] = s_3;
        }
      }
      // [Attention]
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // [Attention]
      for (int rr_3 = 0; rr_3 < 32; rr_3 += 8) {
        const int r_3 = rr_3 + thread_id / 32;
        float top_3 = max_f32(sc_3[r_3 * 64 + thread_id % 32], sc_3[r_3 * 64 + (thread_id % 32 + 32)]);
        const float top_3_16 = simd_shuffle_xor(top_3, ushort(16));
        top_3 = max_f32(top_3, top_3_16);
        const float top_3_8 = simd_shuffle_xor(top_3, ushort(8));
        top_3 = max_f32(top_3, top_3_8);
        const float top_3_4 = simd_shuffle_xor(top_3, ushort(4));
        top_3 = max_f32(top_3, top_3_4);
        const float top_3_2 = simd_shuffle_xor(top_3, ushort(2));
        top_3 = max_f32(top_3, top_3_2);
        const float top_3_1 = simd_shuffle_xor(top_3, ushort(1));
        top_3 = max_f32(top_3, top_3_1);
        const float was_3 = m[r_3];
        const float now_3 = max_f32(was_3, top_3);
        const float pa_3 = (sc_3[r_3 * 64 + thread_id % 32] == -INFINITY) ? 0.0f : max_f32(precise::exp(sc_3[r_3 * 64 + thread_id % 32] - now_3), 1.1754944e-38f);
        const float pb_3 = (sc_3[r_3 * 64 + (thread_id % 32 + 32)] == -INFINITY) ? 0.0f : max_f32(precise::exp(sc_3[r_3 * 64 + (thread_id % 32 + 32)] - now_3), 1.1754944e-38f);
        float sum_3 = pa_3 + pb_3;
        const float sum_3_16 = simd_shuffle_xor(sum_3, ushort(16));
        sum_3 = sum_3 + sum_3_16;
        const float sum_3_8 = simd_shuffle_xor(sum_3, ushort(8));
        sum_3 = sum_3 + sum_3_8;
        const float sum_3_4 = simd_shuffle_xor(sum_3, ushort(4));
        sum_3 = sum_3 + sum_3_4;
        const float sum_3_2 = simd_shuffle_xor(sum_3, ushort(2));
        sum_3 = sum_3 + sum_3_2;
        const float sum_3_1 = simd_shuffle_xor(sum_3, ushort(1));
        sum_3 = sum_3 + sum_3_1;
        const float less_3 = (now_3 == -INFINITY) ? 1.0f : precise::exp(was_3 - now_3);
        sc_3[r_3 * 64 + thread_id % 32] = pa_3;
        sc_3[r_3 * 64 + (thread_id % 32 + 32)] = pb_3;
        if (thread_id % 32 == 0) {
          sums_3[r_3] = sum_3;
          sh_3[r_3] = less_3;
          tops_3[r_3] = now_3;
        }
      }
      // [Attention]
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // [Attention]
      for (int n_3 = thread_id; n_3 < 32; n_3 += 256) {
        l[n_3] = l[n_3] * sh_3[n_3] + sums_3[n_3];
        m[n_3] = tops_3[n_3];
      }
      // [Attention]
      for (int x_3 = thread_id / 16; x_3 < 32; x_3 += 16) {
        for (int y_3 = thread_id % 16; y_3 < 16; y_3 += 16) {
          float acc_3 = o[x_3 * 16 + y_3] * sh_3[x_3];
          for (int key_3 = 0, key_3_end = min_i32(64, P + S - kt); key_3 < key_3_end; ++key_3) {
            acc_3 = (sc_3[x_3 * 64 + key_3] == 0.0f) ? acc_3 : fma(sc_3[x_3 * 64 + key_3], float(x2[(kt + key_3) * 32 + v0 * 16 + y_3]), acc_3);
          }
          o[x_3 * 16 + y_3] = acc_3;
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = thread_id / 16, i_end = min_i32(32, S - r0); i < i_end; i += 16) {
      for (int c = thread_id % 16; c < 16; c += 16) {
        y0[(r0 + i) * 64 + h * 16 + c] = (l[i] == 0.0f) ? 0.0f : o[i * 16 + c] / l[i];
      }
    }
  }
}
