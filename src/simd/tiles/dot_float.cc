// qk_dot_f32, qk_dot_f16: y[r, j] += sum_k w[j, k] * x[r, k] for the rows of a weight as they lie in the file (decode).
//
//   y: f32 [m, n], y_ld elements between rows. w: n rows of k f32 or f16, w_stride bytes apart. x: m rows of k f32.
//   m is 1 to 8 (more is right, but reads w once for every 8 rows). w is never read past its last element; only
//   prefetches run `ahead` bytes further.
//
// Bound by memory: a group of weight rows is read once, as few streams as possible, while the x rows stay in the first
// caches. One row of w at a time for m <= 2; two for more, since each vector of x is then loaded half as often.
// Several rows of x go by blocks of columns that fit the first cache.
#include "simd/tiles/dot_float-inl.h"

namespace {

constexpr int64_t kFirstCache = 24 << 10;  // bytes of it that x may take, beside the weights passing through

// M rows of x against R rows of w.
template <typename T, int M, int R>
HWY_INLINE void DotRows(float* y, int64_t y_ld, const char* w_bytes, int64_t w_stride, const char* x_bytes,
                        int64_t x_stride, int64_t k, int64_t ahead) {
  // Enough accumulators to hide the latency of the FMA, and a step of whole cache lines, so one prefetch serves each.
  constexpr int kPerLine = 64 / (kLanes * sizeof(T)) > 0 ? 64 / (kLanes * sizeof(T)) : 1;
  constexpr int kAccumulators = M * R == 1 ? 4 : M * R == 2 ? 2 : 1;
  constexpr int kVectors = kPerLine > kAccumulators ? kPerLine : kAccumulators;
  constexpr int kStep = kVectors * kLanes;
  VF sum[kAccumulators][M][R];
#pragma clang loop unroll(full)
  for (int a = 0; a < kAccumulators; ++a) {
#pragma clang loop unroll(full)
    for (int i = 0; i < M; ++i) {
#pragma clang loop unroll(full)
      for (int j = 0; j < R; ++j) sum[a][i][j] = hn::Zero(kF32);
    }
  }
  const float* x[M];
  for (int i = 0; i < M; ++i) x[i] = reinterpret_cast<const float*>(x_bytes + i * x_stride);
  const T* w[R];
  for (int j = 0; j < R; ++j) w[j] = reinterpret_cast<const T*>(w_bytes + j * w_stride);
  auto multiply = [&](int a, int64_t at, auto load) HWY_ATTR {
    VF row[R];
#pragma clang loop unroll(full)
    for (int j = 0; j < R; ++j) row[j] = load(w[j] + at);
#pragma clang loop unroll(full)
    for (int i = 0; i < M; ++i) {
      const VF vx = load(x[i] + at);
#pragma clang loop unroll(full)
      for (int j = 0; j < R; ++j) sum[a][i][j] = hn::MulAdd(row[j], vx, sum[a][i][j]);
    }
  };
  const auto whole = [](auto* p) HWY_ATTR { return LoadFloat(p); };
  int64_t at = 0;
  for (; at + kStep <= k; at += kStep) {
#pragma clang loop unroll(full)
    for (int j = 0; j < R; ++j) {
#pragma clang loop unroll(full)
      for (int line = 0; line < static_cast<int>(kStep * sizeof(T)); line += 64) {
        Prefetch2(reinterpret_cast<const char*>(w[j] + at) + ahead + line);
      }
    }
#pragma clang loop unroll(full)
    for (int v = 0; v < kVectors; ++v) multiply(v % kAccumulators, at + v * kLanes, whole);
  }
  for (; at + kLanes <= k; at += kLanes) multiply(0, at, whole);
  if (at < k) multiply(0, at, [&](auto* p) HWY_ATTR { return LoadPart(p, k - at); });
#pragma clang loop unroll(full)
  for (int i = 0; i < M; ++i) {
#pragma clang loop unroll(full)
    for (int j = 0; j < R; ++j) {
      VF total = sum[0][i][j];
#pragma clang loop unroll(full)
      for (int a = 1; a < kAccumulators; ++a) total = hn::Add(total, sum[a][i][j]);
      y[i * y_ld + j] += hn::GetLane(hn::SumOfLanes(kF32, total));
    }
  }
}

template <typename T, int M>
HWY_NOINLINE void Dot(float* y, int64_t y_ld, const char* w, int64_t w_stride, const char* x, int64_t x_stride,
                      int64_t n, int64_t k, int64_t ahead) {
  constexpr int R = M <= 2 ? 1 : kManyRegisters || M <= 4 ? 2 : 1;
  // Of R interleaved rows, the next lines wanted are those of the next R rows.
  const int64_t distance = R == 1 || ahead > R * w_stride ? ahead : R * w_stride;
  // All rows of w take part in a block of columns before the next block, so that x stays in the first cache.
  constexpr int64_t kMostColumns = kFirstCache / (M * sizeof(float)) / 64 * 64;
  const int64_t block = M == 1 || k <= kMostColumns ? k : kMostColumns;
  for (int64_t p = 0; p < k; p += block) {
    const int64_t columns = k - p < block ? k - p : block;
    const char* w_block = w + p * sizeof(T);
    const char* x_block = x + p * sizeof(float);
    int64_t j = 0;
    for (; j + R <= n; j += R) {
      DotRows<T, M, R>(y + j, y_ld, w_block + j * w_stride, w_stride, x_block, x_stride, columns, distance);
    }
    if constexpr (R > 1) {
      for (; j < n; ++j)
        DotRows<T, M, 1>(y + j, y_ld, w_block + j * w_stride, w_stride, x_block, x_stride, columns, ahead);
    }
  }
}

template <typename T>
HWY_INLINE void DotAny(float* y, int64_t y_ld, const void* w_any, int64_t w_stride, const void* x_any, int64_t x_stride,
                       int64_t m, int64_t n, int64_t k, int64_t ahead) {
  const char* w = static_cast<const char*>(w_any);
  const char* x = static_cast<const char*>(x_any);
  while (m > 0) {
    switch (m) {
      case 1: return Dot<T, 1>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
      case 2: return Dot<T, 2>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
      case 3: return Dot<T, 3>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
      case 4: return Dot<T, 4>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
      case 5: return Dot<T, 5>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
      case 6: return Dot<T, 6>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
      case 7: return Dot<T, 7>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
      default: Dot<T, 8>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
    }
    m -= 8;
    y += 8 * y_ld;
    x += 8 * x_stride;
  }
}

}  // namespace

QUERN_TILE(qk_dot_f32)(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride,
                       int64_t m, int64_t n, int64_t k, int64_t ahead) {
  DotAny<float>(y, y_ld, w, w_stride, x, x_stride, m, n, k, ahead);
}

QUERN_TILE(qk_dot_f16)(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride,
                       int64_t m, int64_t n, int64_t k, int64_t ahead) {
  DotAny<F16>(y, y_ld, w, w_stride, x, x_stride, m, n, k, ahead);
}
