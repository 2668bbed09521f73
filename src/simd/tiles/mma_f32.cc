// qk_mma_f32: c[i, j] += sum_p x[i, p] * panel[p, j] for m rows of x and the n <= 32 columns of a kn32 panel (prefill).
//
//   c: f32, c_ld elements between rows; columns n and beyond are not touched. x: f32 rows, x_stride bytes apart.
//   panel: f32 [k][32], missing columns zero. Any m: blocks of rows are much alike, of at most 12 (AVX-512), 6 or 4
//   rows. Of a panel that may lie far, `ahead` is how many bytes before their use its lines are prefetched; else 0.
//   Of the `next` bytes that lie `after` the first ones behind it each block of rows asks for its share. With
//   `from_zero` c = instead of c +=.
//
// qk_mma_f32_pair: the same for two panels, whose sums go to c and d: the bits are those of two calls; `next` bytes are
// those behind the other one. Where there are 32 registers of 64 bytes, blocks of at most 6 rows by the 64 columns of
// both panels: 10 loads for 24 multiplications, where 12 rows by 32 columns have 14. A core of its own hides either;
// one whose loads another thread takes half of does a tenth more with these.
//
// qk_mma_f32_runs, qk_mma_f32_runs_pair: the same of rows of e elements that run on into each other: row i has k of
// them from the beginning of row i of x on, and the last rows, which have fewer, have no sums.
#include "simd/tiles/mma_panel-inl.h"

namespace {

// Once, for all that call it.
HWY_NOINLINE void OnePanel(const Sums<float>& c, const void* x, int64_t x_stride, const void* panel, int64_t m,
                           int64_t n, int64_t k, int64_t ahead, const char* behind, int64_t next) {
  MultiplyPanel<FloatTerm, true>(c, x, x_stride, panel, m, n, k, ahead, behind, next);
}

HWY_INLINE const char* Behind(const void* panel, int64_t k, int64_t after) {
  return static_cast<const char*>(panel) + k * kPanelColumns * static_cast<int64_t>(sizeof(float)) + after;
}

#if HWY_MAX_BYTES == 64
constexpr int64_t kPairRows = 6, kLeastPairRows = 5;
constexpr int64_t kAskedPairRows = 30;  // of panels that are asked for: fewer rows gain nothing by having two
constexpr int kPairVectors = 4;         // two of each panel

template <int R, typename Beside>
HWY_NOINLINE void PairBlock(Sums<float> c, Sums<float> d, const char* x, int64_t x_stride, const char* panel,
                            int64_t other, int64_t k, Beside beside) {
  const auto at = [&](const char* b, int v) { return (v < 2 ? b : b + other) + v % 2 * HWY_MAX_BYTES; };
  MultiplyTile<R, kPairVectors, 1>(
      x, x_stride, sizeof(float), panel, kPanelColumns * sizeof(float), k,
      [&](const char* b, int v) { return LoadFloat(reinterpret_cast<const float*>(at(b, v))); },
      [&](int i, int v, VF sum) { (v < 2 ? c : d).Add(i, v % 2 * 16, sum); }, beside);
}

// Whether `rows` go by blocks of both panels: fewer rows a block would load more than blocks of one panel do.
HWY_INLINE bool SuitsPair(int64_t rows) { return rows >= 2 * kLeastPairRows || rows == 5 || rows == 6; }

HWY_INLINE void MultiplyPair(Sums<float> c, Sums<float> d, const char* x, int64_t x_stride, const char* panel,
                             const char* other, int64_t m, int64_t k, int64_t ahead, const char* behind, int64_t next) {
  const int64_t blocks = (m + kPairRows - 1) / kPairRows;
  int64_t block = 0;
  for (int64_t left = m; left > 0; ++block) {
    const int64_t rows = NextRows(left, kPairRows);
    const auto multiply = [&]<int R>() {
      const auto with = [&](const auto& beside) { PairBlock<R>(c, d, x, x_stride, panel, other - panel, k, beside); };
      if (next == 0) return with(Nothing());
      with(block == 0 && ahead > 0 ? Ask::Both(panel, ahead, behind, next, k, blocks)
                                   : Ask::Next(behind, next, k, block, blocks));
    };
    switch (rows) {
      case 4: multiply.template operator()<4>(); break;
      case 5: multiply.template operator()<5>(); break;
      default: multiply.template operator()<6>(); break;
    }
    left -= rows;
    x += rows * x_stride;
    c = c.At(rows, 0);
    d = d.At(rows, 0);
  }
}
#endif

HWY_NOINLINE void TwoPanels(const Sums<float>& c, const Sums<float>& d, const void* x, int64_t x_stride,
                            const void* panel, const void* other, int64_t m, int64_t n, int64_t k, int64_t ahead,
                            const char* behind, int64_t next) {
  const auto one_by_one = [&](int64_t rows) {
    const int64_t half = next / 2;
    OnePanel(c, x, x_stride, panel, rows, n, k, ahead, behind, half);
    OnePanel(d, x, x_stride, other, rows, n, k, ahead, behind + half, next - half);
  };
#if HWY_MAX_BYTES == 64
  if (n == kPanelColumns) {
    // Panels that blocks of rows before these have asked for are in the second cache; others come from memory one after
    // the other, for as many rows as there are registers: for half as many they would come twice as fast as it gives
    // them.
    const int64_t first = ahead > 0 && next == 0 ? NextRows(m, MostRows(x_stride)) : 0;
    if (ahead > 0 && next > 0 ? m >= kAskedPairRows : SuitsPair(m - first)) {
      if (first > 0) one_by_one(first);
      return MultiplyPair(c.At(first, 0), d.At(first, 0), static_cast<const char*>(x) + first * x_stride, x_stride,
                          static_cast<const char*>(panel), static_cast<const char*>(other), m - first, k, ahead, behind,
                          next);
    }
  }
#endif
  one_by_one(m);
}

// Calls multiply(x, rows, first, count) for the parts of k of rows that run on into each other: for all of it, where
// they lie so in memory, else for what each row has of it. `rows`: those of m that have k elements.
template <typename Multiply>
HWY_INLINE void OverRuns(const void* x, int64_t x_stride, int64_t m, int64_t e, int64_t k, const Multiply& multiply) {
  const int64_t rows = m - (k - 1) / e;
  if (rows <= 0 || k <= 0) return;
  if (x_stride == e * static_cast<int64_t>(sizeof(float))) return multiply(x, rows, 0, k);
  const char* from = static_cast<const char*>(x);
  for (int64_t first = 0; first < k; first += e, from += x_stride)
    multiply(from, rows, first, k - first < e ? k - first : e);
}

HWY_INLINE const void* From(const void* panel, int64_t first) {
  return static_cast<const float*>(panel) + first * kPanelColumns;
}

}  // namespace

QUERN_TILE(qk_mma_f32)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                       int64_t n, int64_t k, int64_t ahead, int64_t next, int64_t after, int64_t from_zero) {
  OnePanel(Sums<float>::Of(c, c_ld, from_zero), x, x_stride, panel, m, n, k, ahead, Behind(panel, k, after), next);
}

QUERN_TILE(qk_mma_f32_pair)(float* c, int64_t c_ld, float* d, int64_t d_ld, const void* x, int64_t x_stride,
                            const void* panel, int64_t, const void* other, int64_t, int64_t m, int64_t n, int64_t k,
                            int64_t ahead, int64_t next, int64_t after, int64_t from_zero) {
  TwoPanels(Sums<float>::Of(c, c_ld, from_zero), Sums<float>::Of(d, d_ld, from_zero), x, x_stride, panel, other, m, n,
            k, ahead, Behind(other, k, after), next);
}

QUERN_TILE(qk_mma_f32_runs)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t,
                            int64_t m, int64_t n, int64_t e, int64_t k, int64_t ahead, int64_t next, int64_t after) {
  OverRuns(x, x_stride, m, e, k, [&](const void* from, int64_t rows, int64_t first, int64_t count) {
    OnePanel(Sums<float>::Of(c, c_ld, false), from, x_stride, From(panel, first), rows, n, count, ahead,
             Behind(panel, k, after), next);
  });
}

QUERN_TILE(qk_mma_f32_runs_pair)(float* c, int64_t c_ld, float* d, int64_t d_ld, const void* x, int64_t x_stride,
                                 const void* panel, int64_t, const void* other, int64_t, int64_t m, int64_t n,
                                 int64_t e, int64_t k, int64_t ahead, int64_t next, int64_t after) {
  OverRuns(x, x_stride, m, e, k, [&](const void* from, int64_t rows, int64_t first, int64_t count) {
    TwoPanels(Sums<float>::Of(c, c_ld, false), Sums<float>::Of(d, d_ld, false), from, x_stride, From(panel, first),
              From(other, first), rows, n, count, ahead, Behind(other, k, after), next);
  });
}
