/* Systems, determinants and factors of matrices: LU with partial pivoting, Cholesky and Householder's QR. The first two
 * go by blocks of columns, so that most of the work is a product of blocks that a cache holds. */
#include <math.h>
#include <string.h>

#include "rt/linear_algebra.h"

enum { BLOCK = 32 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void swap_rows(double* a, double* b, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    const double kept = a[j];
    a[j] = b[j];
    b[j] = kept;
  }
}

/* a [n, n] becomes L (with ones on the diagonal) and U; rows of b, if there is one, are exchanged with its. The sign of
 * the permutation. A pivot of 0 stays where it is: nothing is below it. */
static double factor_lu(double* a, double* b, int64_t n, int64_t columns) {
  double sign = 1;
  for (int64_t start = 0; start < n; start += BLOCK) {
    const int64_t stop = least(n, start + BLOCK);
    for (int64_t k = start; k < stop; ++k) {
      int64_t pivot = k;
      for (int64_t i = k + 1; i < n; ++i) {
        if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
      }
      if (pivot != k) {
        swap_rows(a + k * n, a + pivot * n, n);
        if (b != 0) swap_rows(b + k * columns, b + pivot * columns, columns);
        sign = -sign;
      }
      const double top = a[k * n + k];
      if (top == 0) continue;
      for (int64_t i = k + 1; i < n; ++i) {
        const double factor = a[i * n + k] /= top;
        for (int64_t j = k + 1; j < stop; ++j) a[i * n + j] -= factor * a[k * n + j];
      }
    }
    for (int64_t k = start; k < stop; ++k) {
      for (int64_t i = k + 1; i < stop; ++i) {
        const double factor = a[i * n + k];
        for (int64_t j = stop; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
      }
    }
    quern_subtract_product(a + stop * n + stop, n, a + stop * n + start, n, a + start * n + stop, n, n - stop, n - stop,
                           stop - start);
  }
  return sign;
}

static int64_t work_of_lu(int64_t m, int64_t n, int64_t columns) {
  (void)columns;
  return m * n;
}

static void solve(const quern_matrices* x) {
  const int64_t n = x->n, columns = x->columns;
  double *lu = x->work, *y = x->out[0];
  memcpy(lu, x->in[0], (size_t)(n * n) * sizeof(double));
  memcpy(y, x->in[1], (size_t)(n * columns) * sizeof(double));
  factor_lu(lu, y, n, columns);
  for (int64_t start = 0; start < n; start += BLOCK) {
    const int64_t stop = least(n, start + BLOCK);
    for (int64_t i = start; i < stop; ++i) {
      for (int64_t k = start; k < i; ++k) {
        for (int64_t j = 0; j < columns; ++j) y[i * columns + j] -= lu[i * n + k] * y[k * columns + j];
      }
    }
    quern_subtract_product(y + stop * columns, columns, lu + stop * n + start, n, y + start * columns, columns,
                           n - stop, columns, stop - start);
  }
  for (int64_t stop = n; stop > 0; stop = (stop - 1) / BLOCK * BLOCK) {
    const int64_t start = (stop - 1) / BLOCK * BLOCK;
    for (int64_t i = stop - 1; i >= start; --i) {
      for (int64_t k = i + 1; k < stop; ++k) {
        for (int64_t j = 0; j < columns; ++j) y[i * columns + j] -= lu[i * n + k] * y[k * columns + j];
      }
      for (int64_t j = 0; j < columns; ++j) y[i * columns + j] /= lu[i * n + i];
    }
    quern_subtract_product(y, columns, lu + start, n, y + start * columns, columns, start, columns, stop - start);
  }
}

static void determinant(const quern_matrices* x) {
  memcpy(x->work, x->in[0], (size_t)(x->n * x->n) * sizeof(double));
  double value = factor_lu(x->work, 0, x->n, 0);
  for (int64_t i = 0; i < x->n; ++i) value *= x->work[i * x->n + i];
  x->out[0][0] = value;
}

static void log_determinant(const quern_matrices* x) {
  memcpy(x->work, x->in[0], (size_t)(x->n * x->n) * sizeof(double));
  double sign = factor_lu(x->work, 0, x->n, 0), sum = 0;
  for (int64_t i = 0; i < x->n; ++i) {
    const double pivot = x->work[i * x->n + i];
    sign *= isnan(pivot) ? NAN : pivot == 0 ? 0 : pivot < 0 ? -1 : 1;
    sum += log(fabs(pivot));
  }
  x->out[0][0] = sign;
  x->out[1][0] = sum;
}

static int64_t work_of_cholesky(int64_t m, int64_t n, int64_t columns) {
  (void)m, (void)columns;
  return n * n + BLOCK * n;
}

static void cholesky(const quern_matrices* x) {
  const int64_t n = x->n;
  const int upper = x->attribute == 'u';
  double *l = x->work, *turned = x->work + n * n;
  int positive = 1;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) l[i * n + j] = upper ? x->in[0][j * n + i] : x->in[0][i * n + j];
  }
  for (int64_t start = 0; start < n && positive; start += BLOCK) {
    const int64_t stop = least(n, start + BLOCK), width = stop - start, rest = n - stop;
    for (int64_t k = start; k < stop; ++k) {
      for (int64_t i = k; i < n; ++i) {
        double value = l[i * n + k];
        for (int64_t j = start; j < k; ++j) value -= l[i * n + j] * l[k * n + j];
        if (i == k) {
          positive = positive && value > 0;
          value = sqrt(value);
        } else {
          value /= l[k * n + k];
        }
        l[i * n + k] = value;
      }
    }
    for (int64_t i = 0; i < rest; ++i) {
      for (int64_t j = 0; j < width; ++j) turned[j * rest + i] = l[(stop + i) * n + start + j];
    }
    for (int64_t i = 0; i < rest; i += BLOCK) { /* below the diagonal, a block of rows at a time */
      const int64_t rows = least(BLOCK, rest - i);
      quern_subtract_product(l + (stop + i) * n + stop, n, l + (stop + i) * n + start, n, turned, rest, rows, i + rows,
                             width);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j)
      x->out[0][upper ? j * n + i : i * n + j] = !positive ? NAN : j <= i ? l[i * n + j] : 0;
  }
}

static int64_t work_of_qr(int64_t m, int64_t n, int64_t columns) {
  (void)columns;
  return m * n + m * least(m, n) + n + m;
}

/* a [m, n] -= v (scale v^T a), of rows `from` on; `sums` has room for n. */
static void reflect(double* a, int64_t n, int64_t from, int64_t m, const double* v, double scale, double* sums) {
  memset(sums, 0, (size_t)n * sizeof(double));
  for (int64_t i = from; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) sums[j] += v[i] * a[i * n + j];
  }
  for (int64_t i = from; i < m; ++i) {
    const double factor = scale * v[i];
    for (int64_t j = 0; j < n; ++j) a[i * n + j] -= factor * sums[j];
  }
}

/* Reflections H_k with R = .. H_1 H_0 a; the vectors are kept, scaled to v v^T = 2, in columns of `vectors`. */
static void qr(const quern_matrices* x) {
  const int64_t m = x->m, n = x->n, k = least(m, n);
  double *r = x->work, *vectors = r + m * n, *sums = vectors + m * k, *v = sums + n, *q = x->out[0];
  memcpy(r, x->in[0], (size_t)(m * n) * sizeof(double));
  memset(vectors, 0, (size_t)(m * k) * sizeof(double));
  for (int64_t c = 0; c < k; ++c) {
    double largest = 0, squares = 0;
    for (int64_t i = c; i < m; ++i) largest = fmax(largest, fabs(r[i * n + c]));
    if (largest == 0) continue;
    memset(v, 0, (size_t)m * sizeof(double));
    for (int64_t i = c; i < m; ++i) v[i] = r[i * n + c] / largest;
    for (int64_t i = c; i < m; ++i) squares += v[i] * v[i];
    v[c] += copysign(sqrt(squares), v[c]);
    squares = 0;
    for (int64_t i = c; i < m; ++i) squares += v[i] * v[i];
    const double scale = sqrt(2 / squares);
    for (int64_t i = c; i < m; ++i) vectors[i * k + c] = v[i] *= scale;
    reflect(r, n, c, m, v, 1, sums);
    for (int64_t i = c + 1; i < m; ++i) r[i * n + c] = 0;
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < k; ++j) q[i * k + j] = i == j;
  }
  for (int64_t c = k - 1; c >= 0; --c) {
    for (int64_t i = 0; i < m; ++i) v[i] = vectors[i * k + c];
    reflect(q, k, c, m, v, 1, sums);
  }
  for (int64_t c = 0; c < k; ++c) { /* the diagonal of r is not negative */
    const double sign = r[c * n + c] < 0 ? -1 : 1;
    for (int64_t j = 0; j < n; ++j) x->out[1][c * n + j] = j < c ? 0 : sign * r[c * n + j];
    for (int64_t i = 0; i < m; ++i) q[i * k + c] *= sign;
  }
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
KERNEL(cholesky, work_of_cholesky, cholesky)
KERNEL(qr, work_of_qr, qr)
