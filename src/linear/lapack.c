/* The functions of linear algebra by LAPACK, through its C interface, which looks for NaN in what it is given. Signs
 * that LAPACK leaves open are chosen here: of R's diagonal, and of a vector's sum by weights 1 / (i + pi), neither of
 * which is negative. */
#include <math.h>
#include <string.h>

#include "linear/lapack.h"
#include "linear/linear_algebra.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void copy(double* to, const double* from, int64_t elements) {
  memcpy(to, from, (size_t)elements * sizeof(double));
}

/* 1 or -1: by which a vector is to be multiplied. */
static double sign_of(const double* vector, int64_t step, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += vector[i * step] / ((double)i + 3.14159265358979323846);
  return sum < 0 ? -1 : 1;
}

static void scale(double* vector, int64_t step, int64_t n, double by) {
  for (int64_t i = 0; i < n; ++i) vector[i * step] *= by;
}

/* A copy of a, and as many pivots as it has rows. */
static int64_t work_of_lu(int64_t m, int64_t n, int64_t columns) {
  (void)m, (void)columns;
  return n * n + n;
}

static int solve(const quern_matrices* x) {
  const int64_t n = x->n, columns = x->columns;
  copy(x->work, x->in[0], n * n);
  copy(x->out[0], x->in[1], n * columns);
  if (n == 0 || columns == 0) return 1;
  lapack_int* pivots = (lapack_int*)(x->work + n * n);
  return LAPACK(dgesv)(LAPACK_ROW_MAJOR, (lapack_int)n, (lapack_int)columns, x->work, (lapack_int)n, pivots, x->out[0],
                       (lapack_int)columns) == 0;
}

/* The sign of the determinant of a, and the pivots on the diagonal of `work`: 0 where a is singular. */
static int factor(const quern_matrices* x, double* sign) {
  const int64_t n = x->n;
  lapack_int* pivots = (lapack_int*)(x->work + n * n);
  copy(x->work, x->in[0], n * n);
  *sign = 1;
  /* The determinant is that of the transpose too. */
  if (n > 0 && LAPACK(dgetrf)(LAPACK_COL_MAJOR, (lapack_int)n, (lapack_int)n, x->work, (lapack_int)n, pivots) < 0)
    return 0;
  for (int64_t i = 0; i < n; ++i) *sign *= pivots[i] == i + 1 ? 1 : -1;
  return 1;
}

static int determinant(const quern_matrices* x) {
  double value = 1;
  if (!factor(x, &value)) return 0;
  for (int64_t i = 0; i < x->n; ++i) value *= x->work[i * x->n + i];
  x->out[0][0] = value;
  return 1;
}

static int log_determinant(const quern_matrices* x) {
  double sign = 1, sum = 0;
  if (!factor(x, &sign)) return 0;
  for (int64_t i = 0; i < x->n; ++i) {
    const double pivot = x->work[i * x->n + i];
    sign *= isnan(pivot) ? NAN : pivot == 0 ? 0 : pivot < 0 ? -1 : 1;
    sum += log(fabs(pivot));
  }
  x->out[0][0] = sign;
  x->out[1][0] = sum;
  return 1;
}

static int64_t no_work(int64_t m, int64_t n, int64_t columns) {
  (void)m, (void)n, (void)columns;
  return 0;
}

static int cholesky(const quern_matrices* x) {
  const int64_t n = x->n;
  const int upper = x->attribute == 'u';
  double* l = x->out[0];
  copy(l, x->in[0], n * n);
  if (n > 0 && LAPACK(dpotrf)(LAPACK_ROW_MAJOR, upper ? 'U' : 'L', (lapack_int)n, l, (lapack_int)n) != 0) return 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) l[upper ? i * n + j : j * n + i] = 0;
  }
  return 1;
}

static int64_t work_of_qr(int64_t m, int64_t n, int64_t columns) {
  (void)columns;
  return m * n + least(m, n);
}

static int qr(const quern_matrices* x) {
  const int64_t m = x->m, n = x->n, k = least(m, n);
  double *a = x->work, *factors = a + m * n, *q = x->out[0], *r = x->out[1];
  if (k == 0) {
    memset(q, 0, (size_t)(m * k) * sizeof(double));
    memset(r, 0, (size_t)(k * n) * sizeof(double));
    return 1;
  }
  copy(a, x->in[0], m * n);
  if (LAPACK(dgeqrf)(LAPACK_ROW_MAJOR, (lapack_int)m, (lapack_int)n, a, (lapack_int)n, factors) != 0) return 0;
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < n; ++j) r[i * n + j] = j < i ? 0 : a[i * n + j];
  }
  for (int64_t i = 0; i < m; ++i) copy(q + i * k, a + i * n, k);
  if (LAPACK(dorgqr)(LAPACK_ROW_MAJOR, (lapack_int)m, (lapack_int)k, (lapack_int)k, q, (lapack_int)k, factors) != 0)
    return 0;
  for (int64_t c = 0; c < k; ++c) {
    if (r[c * n + c] >= 0) continue;
    scale(r + c * n + c, 1, n - c, -1);
    scale(q + c, k, m, -1);
  }
  return 1;
}

static int64_t work_of_svd(int64_t m, int64_t n, int64_t columns) {
  (void)columns;
  return m * n;
}

static int svd(const quern_matrices* x) {
  const int64_t m = x->m, n = x->n, k = least(m, n);
  double *u = x->out[0], *v = x->out[2];
  if (k == 0) return 1;
  copy(x->work, x->in[0], m * n);
  if (LAPACK(dgesdd)(LAPACK_ROW_MAJOR, 'S', (lapack_int)m, (lapack_int)n, x->work, (lapack_int)n, x->out[1], u,
                     (lapack_int)k, v, (lapack_int)n) != 0)
    return 0;
  for (int64_t i = 0; i < k; ++i) { /* the sign is that of the column of u */
    const double sign = sign_of(u + i, k, m);
    scale(u + i, k, m, sign);
    scale(v + i * n, 1, n, sign);
  }
  return 1;
}

static int eigh(const quern_matrices* x) {
  const int64_t n = x->n;
  double* vectors = x->out[1];
  copy(vectors, x->in[0], n * n);
  if (n > 0 && LAPACK(dsyevd)(LAPACK_ROW_MAJOR, 'V', x->attribute == 'u' ? 'U' : 'L', (lapack_int)n, vectors,
                              (lapack_int)n, x->out[0]) != 0)
    return 0;
  for (int64_t i = 0; i < n; ++i) scale(vectors + i, n, n, sign_of(vectors + i, n, n));
  return 1;
}

#define KERNEL(name, work, compute)                                                            \
  void quern_##name(const quern_args* args, void* scratch, int64_t begin, int64_t end) {       \
    (void)scratch;                                                                             \
    quern_for_batches(args, begin, end, 0, work, compute);                                     \
  }                                                                                            \
  void quern_##name##_f64(const quern_args* args, void* scratch, int64_t begin, int64_t end) { \
    (void)scratch;                                                                             \
    quern_for_batches(args, begin, end, 1, work, compute);                                     \
  }

KERNEL(solve, work_of_lu, solve)
KERNEL(det, work_of_lu, determinant)
KERNEL(log_det, work_of_lu, log_determinant)
KERNEL(cholesky, no_work, cholesky)
KERNEL(qr, work_of_qr, qr)
KERNEL(svd, work_of_svd, svd)
KERNEL(eigh, no_work, eigh)
