// qk_mma_f64: qk_mma_f32 of doubles: c[i, j] += sum_p x[i, p] * panel[p, j], n <= 32 columns of a kn32 panel.
//
//   c: f64, c_ld elements between rows; columns n and beyond are not touched. x: f64 rows, x_stride bytes apart.
//   panel: f64 [k][32], missing columns zero. Any m and from_zero as in qk_mma_f32.
#include "simd/tiles/mma_panel-inl.h"

QUERN_TILE(qk_mma_f64)(double* c, int64_t c_ld, const void* x, int64_t x_stride, const void* panel, int64_t, int64_t m,
                       int64_t n, int64_t k, int64_t from_zero) {
  MultiplyPanel<DoubleTerm, false>(Sums<double>::Of(c, c_ld, from_zero), x, x_stride, panel, m, n, k, /*ahead=*/0,
                                   /*behind=*/nullptr, /*next=*/0);
}
