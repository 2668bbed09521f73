// Compile as Metal 3.1 or later, with fast math off.
#include <metal_stdlib>
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#else
#pragma clang fp contract(off)
#endif
using namespace metal;

static constant ushort grid_iq3_xxs[] = {0, 2, 4, 17, 19, 23, 32, 34, 49, 66, 115, 117, 257, 259, 272, 274, 289, 293, 304, 306, 321, 340, 368, 512, 514, 516, 529, 544, 546, 561, 563, 567, 593, 599, 629, 769, 775, 784, 786, 805, 880, 1043, 1079, 1092, 1111, 1139, 1141, 1281, 1287, 1330, 1362, 1589, 1636, 1808, 1812, 1814, 1859, 1889, 4097, 4099, 4112, 4114, 4129, 4131, 4144, 4146, 4148, 4167, 4176, 4352, 4354, 4369, 4384, 4386, 4609, 4611, 4624, 4626, 4641, 4656, 4722, 4864, 4866, 4896, 4913, 4934, 4966, 5121, 5125, 5200, 5408, 5412, 5446, 5489, 5637, 5922, 5952, 8192, 8194, 8209, 8211, 8224, 8226, 8230, 8241, 8258, 8449, 8451, 8453, 8464, 8466, 8481, 8496, 8547, 8551, 8560, 8704, 8706, 8721, 8727, 8736, 8738, 8759, 8768, 8789, 8961, 8976, 8980, 9072, 9076, 9269, 9299, 9475, 9511, 9537, 9588, 9985, 9987, 10006, 10053, 12289, 12304, 12306, 12321, 12323, 12368, 12389, 12402, 12544, 12546, 12576, 12593, 12612, 12614, 12801, 12803, 12816, 12837, 12882, 12914, 13073, 13107, 13360, 13383, 13426, 13568, 13574, 13602, 13653, 13844, 13878, 13923, 14131, 14176, 16388, 16407, 16437, 16439, 16467, 16471, 16756, 16928, 16951, 16960, 16992, 16998, 17159, 17221, 17412, 17489, 17508, 17701, 17731, 17776, 18181, 18192, 18194, 18224, 20498, 20545, 20592, 20736, 20742, 20774, 20821, 21012, 21042, 21106, 21250, 21331, 21520, 21539, 21543, 21618, 21762, 21809, 22096, 22308, 22338, 24612, 24644, 24646, 24676, 24865, 24929, 25111, 25188, 25392, 25398, 25668, 25861, 25938, 26163, 26371, 26401, 28675, 28677, 28679, 28688, 28722, 28754, 28966, 28992, 29202, 29253, 29266, 29440, 29461, 29491, 29536, 29729, 29761, 29952, 29954, 29988, 30256};
static inline float read_half(device const uchar* at) { return float(*(device const half*)at); }
static constant char levels_iq3_xxs[] = {4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62};
static inline float value_iq3_xxs(int code, int scale, float d) {
  const float product = d * scale * levels_iq3_xxs[code];
  return product;
}
static inline float decode_iq3_xxs(device const uchar* row, uint j) {
  device const uchar* const block = row + j / 256U * 98U;
  const int i = int(j % 256U);
  const int byte0 = block[69 + i / 32 * 4];
  const int byte1 = block[2 + i / 4];
  const int word0 = grid_iq3_xxs[byte1];
  const int byte2 = block[66 + i / 32 * 4 + i / 8 % 4 * 7 / 8];
  const int byte3 = block[66 + i / 32 * 4 + i / 8 % 4 * 7 / 8 + 1];
  const int code = ((word0 >> i % 4 * 4) & 7) | (((((((byte2 | (byte3 << 8)) >> i / 8 % 4 * 7 % 8) & 127) | (((27030 >> (((((byte2 | (byte3 << 8)) >> i / 8 % 4 * 7 % 8) & 127) ^ ((((byte2 | (byte3 << 8)) >> i / 8 % 4 * 7 % 8) & 127) >> 4)) & 15)) & 1) << 7)) >> i % 8) & 1) << 3);
  const int scale = (byte0 >> 4) * 2 + 1;
  const float d = read_half(block) * 0.25f;
  return value_iq3_xxs(code, scale, d);
}

[[kernel, max_total_threads_per_threadgroup(32)]] void gemv_iq3_xxs(
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
        acc = fma(decode_iq3_xxs(w + n * 294, uint(k + u)), x[k + u], acc);
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
