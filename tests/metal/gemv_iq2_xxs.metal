// Compile as Metal 3.1 or later, with fast math off.
#include <metal_stdlib>
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#else
#pragma clang fp contract(off)
#endif
using namespace metal;

static constant ushort grid_iq2_xxs[] = {0, 2, 5, 8, 10, 17, 20, 32, 34, 40, 42, 65, 68, 80, 88, 97, 100, 128, 130, 138, 162, 257, 260, 272, 277, 320, 388, 408, 512, 514, 546, 642, 1025, 1028, 1040, 1057, 1060, 1088, 1090, 1096, 1120, 1153, 1156, 1168, 1188, 1280, 1282, 1288, 1312, 1350, 1385, 1408, 1425, 1545, 1552, 1600, 1668, 1700, 2048, 2053, 2056, 2068, 2088, 2113, 2116, 2128, 2130, 2184, 2308, 2368, 2562, 2580, 4097, 4100, 4112, 4129, 4160, 4192, 4228, 4240, 4245, 4352, 4360, 4384, 4432, 4442, 4480, 4644, 4677, 5120, 5128, 5152, 5157, 5193, 5248, 5400, 5474, 5632, 5654, 6145, 6148, 6160, 6208, 6273, 6400, 6405, 6560, 6737, 8192, 8194, 8202, 8260, 8289, 8320, 8322, 8489, 8520, 8704, 8706, 9217, 9220, 9232, 9280, 9302, 9472, 9537, 9572, 9872, 10248, 10272, 10388, 10820, 16385, 16388, 16400, 16408, 16417, 16420, 16448, 16456, 16470, 16480, 16513, 16516, 16528, 16640, 16672, 16737, 16768, 16773, 16897, 16912, 16968, 16982, 17000, 17408, 17416, 17440, 17536, 17561, 17682, 17700, 17920, 18433, 18436, 18448, 18496, 18501, 18688, 18776, 18785, 18818, 19013, 19088, 20480, 20488, 20497, 20505, 20512, 20608, 20616, 20740, 20802, 20900, 21137, 21648, 21650, 21770, 22017, 22100, 22528, 22545, 22553, 22628, 22848, 23048, 24580, 24592, 24640, 24680, 24832, 24917, 25112, 25184, 25600, 25605, 25872, 25874, 25988, 26690, 32768, 32770, 32778, 32833, 32898, 33028, 33048, 33088, 33297, 33793, 33796, 33808, 33813, 33856, 33888, 34048, 34118, 34196, 34313, 34368, 34400, 34818, 35076, 35345, 36868, 36880, 36900, 36928, 37025, 37142, 37248, 37445, 37888, 37922, 37956, 38225, 39041, 39200, 40962, 41040, 41093, 41225, 41472, 42008, 43088, 43268};
static inline float read_half(device const uchar* at) { return float(*(device const half*)at); }
static constant char levels_iq2_xxs[] = {8, 25, 43, 0, -8, -25, -43, 0};
static inline float value_iq2_xxs(int code, int scale, float d) {
  const float product = d * scale * levels_iq2_xxs[code];
  return product;
}
static inline float decode_iq2_xxs(device const uchar* row, uint j) {
  device const uchar* const block = row + j / 256U * 66U;
  const int i = int(j % 256U);
  const int byte0 = block[9 + i / 32 * 8];
  const int byte1 = block[2 + i / 32 * 8 + i / 8 % 4];
  const int word0 = grid_iq2_xxs[byte1];
  const int byte2 = block[6 + i / 32 * 8 + i / 8 % 4 * 7 / 8];
  const int byte3 = block[6 + i / 32 * 8 + i / 8 % 4 * 7 / 8 + 1];
  const int code = ((word0 >> i % 8 * 2) & 3) | (((((((byte2 | (byte3 << 8)) >> i / 8 % 4 * 7 % 8) & 127) | (((27030 >> (((((byte2 | (byte3 << 8)) >> i / 8 % 4 * 7 % 8) & 127) ^ ((((byte2 | (byte3 << 8)) >> i / 8 % 4 * 7 % 8) & 127) >> 4)) & 15)) & 1) << 7)) >> i % 8) & 1) << 2);
  const int scale = (byte0 >> 4) * 2 + 1;
  const float d = read_half(block) * 0.125f;
  return value_iq2_xxs(code, scale, d);
}

[[kernel, max_total_threads_per_threadgroup(32)]] void gemv_iq2_xxs(
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
        acc = fma(decode_iq2_xxs(w + n * 198, uint(k + u)), x[k + u], acc);
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
