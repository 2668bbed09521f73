// qk_mma_f32: c[i, j] += sum_p x[i, p] * panel[p, j] for m rows of x and the n <= 32 columns of a kn32 panel (prefill).
//
//   c: f32, c_ld elements between rows; columns n and beyond are not touched. x: f32 rows, x_stride bytes apart.
//   panel: f32 [k][32], missing columns zero. Any m; fastest when it is a multiple of the tile's 12 (AVX-512) or 6
//   rows.
//
// The panel (K x 128 bytes) stays in the second cache for all of m, so nothing is repacked: a block of rows walks
// down the panel once with its sums in registers.
#include "simd/tiles/mma_float-inl.h"

namespace {

constexpr int64_t kPanelColumns = 32;
constexpr int kTileColumns = kTileVectors * kLanes;

template <int R, int V>
HWY_NOINLINE void Block(float* c, int64_t c_ld, const char* x, int64_t x_stride, const float* panel, int64_t columns,
                        int64_t k) {
  const auto load = [](const char* b, int v) { return LoadFloat(reinterpret_cast<const float*>(b) + v * kLanes); };
  // One sum an element however many rows there are: a row's bits are its own.
  MultiplyTile<R, V, 1>(x, x_stride, sizeof(float), reinterpret_cast<const char*>(panel), kPanelColumns * sizeof(float),
                        k, load, [&](int i, int v, VF sum) {
                          float* to = c + i * c_ld + v * kLanes;
                          const int64_t count = columns - v * kLanes;
                          if (count >= kLanes) {
                            hn::StoreU(hn::Add(LoadFloat(to), sum), kF32, to);
                          } else if (count > 0) {
                            StorePart(hn::Add(LoadPart(to, count), sum), to, count);
                          }
                        });
}

}  // namespace

QUERN_TILE(qk_mma_f32)(float* c, int64_t c_ld, const void* x_any, int64_t x_stride, const void* panel, int64_t,
                       int64_t m, int64_t n, int64_t k) {
  const int64_t most = MostRows(x_stride);
  for (int64_t j = 0; j < n; j += kTileColumns) {
    const float* b = static_cast<const float*>(panel) + j;
    const char* x = static_cast<const char*>(x_any);
    float* to = c + j;
    for (int64_t left = m; left > 0;) {
      const int64_t rows = NextRows(left, most);
      WithRows(rows, [&]<int R>() {
        // Where the last columns fit one vector, the others would be multiplied for nothing.
        if (n - j <= kLanes)
          Block<R, 1>(to, c_ld, x, x_stride, b, n - j, k);
        else
          Block<R, kTileVectors>(to, c_ld, x, x_stride, b, n - j, k);
      });
      left -= rows;
      x += rows * x_stride;
      to += rows * c_ld;
    }
  }
}
