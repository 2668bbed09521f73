// qk_mma_bf16_pairs: c[i, j] += sum_p x[i, p] * w[j, p] for m rows of x and the n <= 32 rows of a panel of pairs.
//
//   c: f32, c_ld elements between rows; columns n and beyond are not touched. x: rows of k bf16, x_stride bytes apart,
//   not read past their last element. panel: words [ceil(k / 2)][32] of two neighbours along k, the first in the low
//   half; missing columns zero; of an odd k the last high half is not used. Any m; fastest as qk_mma_f32. With
//   `from_zero` c = instead of c +=.
//
// qk_mma_bf16_parts: the same of x and y, parts of the rows, by w, and of x by v, where that is not null.
#include "simd/tiles/amx_words.h"
#include "simd/tiles/bf16_pairs-inl.h"
#include "simd/tiles/mma_float-inl.h"

namespace {

#if !defined(__AMX_BF16__)
constexpr int kTileColumns = kTileVectors * kLanes;

template <int R, int V, typename Term, typename Load>
HWY_INLINE void Add(const Sums<float>& c, const char* x, int64_t x_stride, const uint32_t* panel, int64_t columns,
                    int64_t steps, const Load& load) {
  // One sum an element however many rows there are: a row's bits are its own.
  MultiplyTile<R, V, 1, Term>(x, x_stride, sizeof(uint32_t), reinterpret_cast<const char*>(panel),
                              kPanelColumns * sizeof(uint32_t), steps, load,
                              [&](int i, int v, VF sum) { c.Add(i, v * kLanes, sum, columns - v * kLanes); });
}

template <int R, int V>
HWY_NOINLINE void Block(Sums<float> c, const char* x, int64_t x_stride, const uint32_t* panel, int64_t columns,
                        int64_t k) {
  const auto words = [](const char* b, int v) {
    return hn::LoadU(kU32, reinterpret_cast<const uint32_t*>(b) + v * kLanes);
  };
  const int64_t pairs = k / 2;
  Add<R, V, PairTerm>(c, x, x_stride, panel, columns, pairs,
                      [&](const char* b, int v) { return PairsOf(words(b, v)); });
  if (k % 2 == 0) return;
  const VU low = hn::Set(kU32, 0xffffu);
  Add<R, V, SingleTerm>(Sums<float>::Of(c.to, c.ld, false), x + pairs * 4, x_stride, panel + pairs * kPanelColumns,
                        columns, 1, [&](const char* b, int v) { return PairsOf(hn::And(words(b, v), low)); });
}

// m rows of x by up to 32 columns of a panel.
HWY_INLINE void Rows(const Sums<float>& c, const void* x_any, int64_t x_stride, const void* panel, int64_t m, int64_t n,
                     int64_t k) {
  const int64_t most = MostRows(x_stride);
  for (int64_t j = 0; j < n; j += kTileColumns) {
    const uint32_t* b = static_cast<const uint32_t*>(panel) + j;
    const char* x = static_cast<const char*>(x_any);
    Sums<float> to = c.At(0, j);
    for (int64_t left = m; left > 0;) {
      const int64_t rows = NextRows(left, most);
      WithRows(rows, [&]<int R>() {
        // Where the last columns fit one vector, the others would be multiplied for nothing.
        if (n - j <= kLanes)
          Block<R, 1>(to, x, x_stride, b, n - j, k);
        else
          Block<R, kTileVectors>(to, x, x_stride, b, n - j, k);
      });
      left -= rows;
      x += rows * x_stride;
      to = to.At(rows, 0);
    }
  }
}
#endif

}  // namespace

QUERN_TILE(qk_mma_bf16_pairs)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t,
                              int64_t m, int64_t n, int64_t k, int64_t words, int64_t from_zero) {
  if (k > 2 * words) k = 2 * words;
#if defined(__AMX_BF16__)
  quern::simd::RowsOnTiles<quern::simd::PairTiles>(c, c_ld, x, x_stride, panel, m, n, k, from_zero);
#else
  Rows(Sums<float>::Of(c, c_ld, from_zero), x, x_stride, panel, m, n, k);
#endif
}

QUERN_TILE(qk_mma_bf16_parts)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* y, int64_t y_stride,
                              const void* w, int64_t, const void* v, int64_t, int64_t m, int64_t n, int64_t k,
                              int64_t words) {
  if (k > 2 * words) k = 2 * words;
#if defined(__AMX_BF16__)
  using namespace quern::simd;
  const auto bytes = [](const void* of) { return static_cast<const char*>(of); };
  if (v == nullptr) {
    const Sides<2, 1> sides = {{bytes(x), bytes(y)}, {x_stride, y_stride}, {bytes(w)}};
    return RowsOnTiles<PairTiles>(c, c_ld, sides, m, n, k, /*from_zero=*/false);
  }
  const Sides<2, 2> sides = {{bytes(x), bytes(y)}, {x_stride, y_stride}, {bytes(w), bytes(v)}};
  RowsOnTiles<PairTiles>(c, c_ld, sides, m, n, k, /*from_zero=*/false);
#else
  const Sums<float> sums = Sums<float>::Of(c, c_ld, false);
  Rows(sums, y, y_stride, w, m, n, k);
  Rows(sums, x, x_stride, w, m, n, k);
  if (v != nullptr) Rows(sums, x, x_stride, v, m, n, k);
#endif
}
