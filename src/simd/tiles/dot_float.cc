// qk_dot_f32, qk_dot_f16, qk_dot_bf16, qk_dot_bf16_pairs: y[r, j] += sum_k w[j, k] * x[r, k] for the rows of a weight
// as they lie in the file (decode).
//
//   y: f32 [m, n], y_ld elements between rows. w: n rows of k f32, f16 or bf16, w_stride bytes apart. x: m rows of k
//   f32, of the last of bf16.
//   m is 1 to 8 (more is right, but reads w once for every 8 rows). w is never read past its last element; only
//   prefetches run `ahead` bytes further.
//
// Bound by memory: a group of weight rows is read once, as few streams as possible, while the x rows stay in the first
// caches. A sum is of blocks of columns, each in order, whatever m is: a row of x has the bits that it has alone. So it
// takes several rows of w to have enough sums in flight where there is one row of x; two for more, since each vector of
// x is then loaded half as often. Many rows of x go block by block, so that they stay in the first cache.
#include "simd/tiles/bf16_pairs-inl.h"

namespace {

// What a step multiplies: rows of W by rows of f32.
template <typename T>
struct Widened {
  using W = T;
  using X = float;
  static constexpr int kElements = kLanes;  // of a vector
  template <typename P>
  static HWY_INLINE VF Load(const P* p) {
    return LoadFloat(p);
  }
  template <typename P>
  static HWY_INLINE VF LoadUpTo(const P* p, int64_t count) {
    return LoadPart(p, count);
  }
  static HWY_INLINE VF Add(VF w, VF x, VF sum) { return hn::MulAdd(w, x, sum); }
};

// Both of bf16, as they lie.
struct BothBF16 {
  using W = BF16;
  using X = BF16;
  static constexpr int kElements = 2 * kLanes;
  static HWY_INLINE Pairs Load(const BF16* p) { return LoadPairs(p); }
  static HWY_INLINE Pairs LoadUpTo(const BF16* p, int64_t count) { return LoadPairsPart(p, count); }
  static HWY_INLINE VF Add(Pairs w, Pairs x, VF sum) { return AddPairs(w, x, sum); }
};

constexpr int64_t kMostBytes = 3072;  // of a block of x: 8 rows leave room for the weights passing through

// M rows of x against R rows of w, whose results are `apart` elements of y from each other.
template <typename Terms, int M, int R>
HWY_INLINE void DotRows(float* y, int64_t y_ld, int64_t apart, const char* w_bytes, int64_t w_stride,
                        const char* x_bytes, int64_t x_stride, int64_t k, int64_t ahead) {
  // A step of whole cache lines, so one prefetch serves each.
  using T = typename Terms::W;
  using X = typename Terms::X;
  constexpr int kElements = Terms::kElements;
  constexpr int kVectors = 64 / (kElements * sizeof(T)) > 0 ? 64 / (kElements * sizeof(T)) : 1;
  constexpr int kStep = kVectors * kElements;
  VF sum[M][R];
#pragma clang loop unroll(full)
  for (int i = 0; i < M; ++i) {
#pragma clang loop unroll(full)
    for (int j = 0; j < R; ++j) sum[i][j] = hn::Zero(kF32);
  }
  const X* x[M];
  for (int i = 0; i < M; ++i) x[i] = reinterpret_cast<const X*>(x_bytes + i * x_stride);
  const T* w[R];
  for (int j = 0; j < R; ++j) w[j] = reinterpret_cast<const T*>(w_bytes + j * w_stride);
  auto multiply = [&](int64_t at, auto load) HWY_ATTR {
    decltype(load(w[0])) row[R];
#pragma clang loop unroll(full)
    for (int j = 0; j < R; ++j) row[j] = load(w[j] + at);
#pragma clang loop unroll(full)
    for (int i = 0; i < M; ++i) {
      const auto vx = load(x[i] + at);
#pragma clang loop unroll(full)
      for (int j = 0; j < R; ++j) sum[i][j] = Terms::Add(row[j], vx, sum[i][j]);
    }
  };
  const auto whole = [](auto* p) HWY_ATTR { return Terms::Load(p); };
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
    for (int v = 0; v < kVectors; ++v) multiply(at + v * kElements, whole);
  }
  for (; at + kElements <= k; at += kElements) multiply(at, whole);
  if (at < k) multiply(at, [&](auto* p) HWY_ATTR { return Terms::LoadUpTo(p, k - at); });
#pragma clang loop unroll(full)
  for (int i = 0; i < M; ++i) {
#pragma clang loop unroll(full)
    for (int j = 0; j < R; ++j) y[i * y_ld + j * apart] += hn::GetLane(hn::SumOfLanes(kF32, sum[i][j]));
  }
}

// R rows are read side by side, the first of as many parts of the n rows. They lie in different pages, where
// prefetchers follow each as a stream of its own: neighbours that are short are several streams in a page, read at 0.6
// (AVX2, Zen 3) to 0.85 (AVX-512, a Xeon with AMX) of what a read loop has, and those of parts at 0.9 to all of it.
template <typename Terms, int M, int R>
HWY_NOINLINE void DotBy(float* y, int64_t y_ld, const char* w, int64_t w_stride, const char* x, int64_t x_stride,
                        int64_t n, int64_t k, int64_t ahead) {
  const int64_t part = n / R;
  // Few rows of x stay in the first cache whole; of more, all rows of w take part in a block before the next one.
  constexpr int64_t kMostColumns = kMostBytes / sizeof(typename Terms::X);
  const bool blocks = k > kMostColumns;
  const int64_t together = M <= 2 && blocks ? 1 : part;
  // What a stream reads next: what lies behind it; of rows of which other columns are read in between, the same of a
  // row further on.
  const int64_t behind = M > 2 && blocks ? w_stride : ahead;
  for (int64_t first = 0; first < part; first += together) {
    for (int64_t p = 0; p < k; p += kMostColumns) {
      const int64_t columns = k - p < kMostColumns ? k - p : kMostColumns;
      const char* w_block = w + p * sizeof(typename Terms::W);
      const char* x_block = x + p * sizeof(typename Terms::X);
      for (int64_t j = first; j < first + together; ++j) {
        DotRows<Terms, M, R>(y + j, y_ld, part, w_block + j * w_stride, part * w_stride, x_block, x_stride, columns,
                             behind);
      }
    }
  }
  if constexpr (R > 1) {
    if (n % R != 0) {
      const int64_t done = n - n % R;
      DotBy<Terms, M, 1>(y + done, y_ld, w + done * w_stride, w_stride, x, x_stride, n - done, k, ahead);
    }
  }
}

template <typename Terms, int M>
HWY_INLINE void Dot(float* y, int64_t y_ld, const char* w, int64_t w_stride, const char* x, int64_t x_stride, int64_t n,
                    int64_t k, int64_t ahead) {
  if constexpr (M == 1) {
    // Of f32 it takes four streams to keep up with memory, of halves, which have two sums in flight for a line, two.
    DotBy<Terms, M, sizeof(typename Terms::W) == sizeof(float) ? 4 : 2>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
  } else {
    DotBy<Terms, M, kManyRegisters || M <= 4 ? 2 : 1>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
  }
}

template <typename Terms>
HWY_INLINE void DotAny(float* y, int64_t y_ld, const void* w_any, int64_t w_stride, const void* x_any, int64_t x_stride,
                       int64_t m, int64_t n, int64_t k, int64_t ahead) {
  const char* w = static_cast<const char*>(w_any);
  const char* x = static_cast<const char*>(x_any);
  while (m > 0) {
    switch (m) {
      case 1: return Dot<Terms, 1>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
      case 2: return Dot<Terms, 2>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
      case 3: return Dot<Terms, 3>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
      case 4: return Dot<Terms, 4>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
      case 5: return Dot<Terms, 5>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
      case 6: return Dot<Terms, 6>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
      case 7: return Dot<Terms, 7>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
      default: Dot<Terms, 8>(y, y_ld, w, w_stride, x, x_stride, n, k, ahead);
    }
    m -= 8;
    y += 8 * y_ld;
    x += 8 * x_stride;
  }
}

}  // namespace

QUERN_TILE(qk_dot_f32)(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride,
                       int64_t m, int64_t n, int64_t k, int64_t ahead) {
  DotAny<Widened<float>>(y, y_ld, w, w_stride, x, x_stride, m, n, k, ahead);
}

QUERN_TILE(qk_dot_f16)(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride,
                       int64_t m, int64_t n, int64_t k, int64_t ahead) {
  DotAny<Widened<F16>>(y, y_ld, w, w_stride, x, x_stride, m, n, k, ahead);
}

QUERN_TILE(qk_dot_bf16)(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride,
                        int64_t m, int64_t n, int64_t k, int64_t ahead) {
  DotAny<Widened<BF16>>(y, y_ld, w, w_stride, x, x_stride, m, n, k, ahead);
}

QUERN_TILE(qk_dot_bf16_pairs)(float* y, int64_t y_ld, const void* w, int64_t w_stride, const void* x, int64_t x_stride,
                              int64_t m, int64_t n, int64_t k, int64_t ahead) {
  DotAny<BothBF16>(y, y_ld, w, w_stride, x, x_stride, m, n, k, ahead);
}
