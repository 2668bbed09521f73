// qk_mma_f32: c[i, j] += sum_p x[i, p] * panel[p, j] for m rows of x and the n <= 32 columns of a kn32 panel (prefill).
//
//   c: f32, c_ld elements between rows; columns n and beyond are not touched. x: f32 rows, x_stride bytes apart.
//   panel: f32 [k][32], missing columns zero. Any m: blocks of rows are much alike, of at most 12 (AVX-512), 6 or 4
//   rows. Of a panel that may lie far, `ahead` is how many bytes before their use its lines are prefetched; else 0.
#include "simd/tiles/mma_panel-inl.h"

QUERN_TILE(qk_mma_f32)(float* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                       int64_t n, int64_t k, int64_t ahead) {
  MultiplyPanel<FloatTerm>(c, c_ld, x, x_stride, panel, m, n, k, ahead);
}
