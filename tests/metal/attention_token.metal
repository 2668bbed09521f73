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

[[kernel, max_total_threads_per_threadgroup(256)]] void attention_token(
    device const float* x0 [[buffer(0)]],
    device float* tmp0 [[buffer(1)]],
    device const half* x1 [[buffer(2)]],
    device const half* x2 [[buffer(3)]],
    constant long* symbols [[buffer(4)]],
    uint chunk_index [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  threadgroup int lo[2];
  threadgroup int hi[2];
  threadgroup float o[128];
  threadgroup float m[8];
  threadgroup float l[8];
  threadgroup float sc_3[512];
  threadgroup float sh_3[8];
  threadgroup float tops_3[8];
  threadgroup float sums_3[8];
  const int thread_id = int(thread_index);
  const int P = int(symbols[0]);
  const int v_RUNS = int(symbols[1]);
  const int s = int(chunk_index);
  const int r = int(chunk_index) % 1;
  {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int v0 = s / 2 * 64;
    for (int fi_0 = thread_id; fi_0 < 8; fi_0 += 256) {
      l[fi_0] = 0.0f;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int fi_1 = thread_id; fi_1 < 8; fi_1 += 256) {
      m[fi_1] = -INFINITY;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int fi_2 = thread_id / 16; fi_2 < 8; fi_2 += 16) {
      for (int fc_2 = thread_id % 16; fc_2 < 16; fc_2 += 16) {
        o[fi_2 * 16 + fc_2] = 0.0f;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int kt = v0, kt_end = min_i32(P + 1, v0 + 64); kt < kt_end; kt += 64) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (int i = thread_id; i < 2; i += 256) {
        lo[i] = int(0);
        hi[i] = int(max_i32(0, min_i32(min_i32(P + 1 - kt, r + P + 1 - kt), 64)));
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // [Attention]
      const int v1 = s % 2;
      // [Attention]
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // [Attention]
      for (int i_3 = thread_id / 64; i_3 < 8; i_3 += 4) {
        for (int j_3 = thread_id % 64; j_3 < 64; j_3 += 64) {
          float s_3 = -INFINITY;
          if (((int(lo[min_i32(i_3, 1)]) <= j_3) & (j_3 < int(hi[min_i32(i_3, 1)]))) & (i_3 < min_i32(2, 4 - v1 * 2))) {
            float sum = 0.0f;
            for (int c_3 = 0; c_3 < 16; ++c_3) {
              sum = fma(x0[r * 64 + (v1 * 2 + min_i32(i_3, min_i32(2, 4 - v1 * 2) - 1)) * 16 + c_3], float(x1[min_i32(kt + j_3, P + 1 - 1) * 32 + v1 * 16 + c_3]), sum);
            }
            s_3 = 0.25f * sum;
          }
          sc_3[i_3 * 64 + j_3] = s_3;
        }
      }
      // [Attention]
      threadgroup_barrier(mem_flags::mem_threadgroup);
      // [Attention]
      for (int rr_3 = 0; rr_3 < 8; rr_3 += 8) {
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
      for (int n_3 = thread_id; n_3 < 8; n_3 += 256) {
        l[n_3] = l[n_3] * sh_3[n_3] + sums_3[n_3];
        m[n_3] = tops_3[n_3];
      }
      // [Attention]
      for (int x_3 = thread_id / 16; x_3 < 8; x_3 += 16) {
        for (int y_3 = thread_id % 16; y_3 < 16; y_3 += 16) {
          float acc_3 = o[x_3 * 16 + y_3] * sh_3[x_3];
          for (int key_3 = 0, key_3_end = min_i32(64, P + 1 - kt); key_3 < key_3_end; ++key_3) {
            acc_3 = (sc_3[x_3 * 64 + key_3] == 0.0f) ? acc_3 : fma(sc_3[x_3 * 64 + key_3], float(x2[(kt + key_3) * 32 + v1 * 16 + y_3]), acc_3);
          }
          o[x_3 * 16 + y_3] = acc_3;
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = thread_id / 16; i < 2; i += 16) {
      for (int c = thread_id % 16; c < 16; c += 16) {
        tmp0[r * (72 * v_RUNS) + s * 36 + i * 18 + c] = o[i * 16 + c];
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = thread_id; i < 2; i += 256) {
      tmp0[r * (72 * v_RUNS) + s * 36 + i * 18 + 16] = m[i];
      tmp0[r * (72 * v_RUNS) + s * 36 + i * 18 + 17] = l[i];
    }
  }
}

[[kernel, max_total_threads_per_threadgroup(32)]] void attention_token_1(
    device const float* tmp0 [[buffer(0)]],
    device float* y0 [[buffer(1)]],
    constant long* symbols [[buffer(2)]],
    uint chunk_index [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]]) {
  const int thread_id = int(thread_index);
  const int P = int(symbols[0]);
  const int v_RUNS = int(symbols[1]);
  const int r = int(chunk_index) / 4;
  const int h = int(chunk_index) % 4;
  {
    // [Attention]
    const int v0 = h / 2;
    // [Attention]
    const int v1 = h % 2;
    // [Attention]
    float max = -INFINITY;
    for (int s = 0; s < v_RUNS; ++s) {
      max = max_f32(max, tmp0[r * (72 * v_RUNS) + (s * 2 + v0) * 36 + v1 * 18 + 16]);
    }
    const float top = max;
    // [Attention]
    float sum = 0.0f;
    for (int s = 0; s < v_RUNS; ++s) {
      const int v2 = s * 2 + v0;
      const float v3 = tmp0[r * (72 * v_RUNS) + v2 * 36 + v1 * 18 + 16];
      sum += ((v3 == -INFINITY) ? 0.0f : precise::exp(v3 - top)) * tmp0[r * (72 * v_RUNS) + v2 * 36 + v1 * 18 + 17];
    }
    const float total = sum;
    // [Attention]
    const float inverse = (total == 0.0f) ? 0.0f : 1.0f / total;
    for (int c = thread_id; c < 16; c += 32) {
      // [Attention]
      float sum_2 = 0.0f;
      for (int s = 0; s < v_RUNS; ++s) {
        const int v4 = s * 2 + v0;
        const float v5 = tmp0[r * (72 * v_RUNS) + v4 * 36 + v1 * 18 + 16];
        sum_2 += tmp0[r * (72 * v_RUNS) + v4 * 36 + v1 * 18 + c] * (((v5 == -INFINITY) ? 0.0f : precise::exp(v5 - top)) * inverse);
      }
      y0[r * 64 + h * 16 + c] = sum_2;
    }
  }
}
