/* Eigenvalues of symmetric matrices and singular values. The first reduces a matrix to three diagonals by reflections
 * and those to one by shifted QL steps; the second turns pairs of rows until all are orthogonal (Hestenes). Signs are
 * chosen by quern_sign_of. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "rt/linear_algebra.h"

enum { MOST_STEPS = 60, MOST_SWEEPS = 40 };

static double dot(const double* a, const double* b, int64_t n) {
  double sums[4] = {0};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int k = 0; k < 4; ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* a, b: c a - s b, s a + c b. */
static void rotate(double* restrict a, double* restrict b, double c, double s, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double x = a[i], y = b[i];
    a[i] = c * x - s * y;
    b[i] = s * x + c * y;
  }
}

/* The symmetric a [n, n] becomes the rows of an orthogonal matrix H with H a H^T = the tridiagonal of `diagonal` and,
 * beside it, `beside`. `v` and `w` have room for n. */
static void tridiagonalise(double* a, double* rows, double* diagonal, double* beside, double* v, double* w, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) rows[i * n + j] = i == j;
  }
  for (int64_t k = 0; k + 2 < n; ++k) {
    double largest = 0, squares = 0;
    for (int64_t i = k + 2; i < n; ++i) largest = fmax(largest, fabs(a[i * n + k]));
    if (largest == 0) continue;
    largest = fmax(largest, fabs(a[(k + 1) * n + k]));
    for (int64_t i = 0; i < n; ++i) {
      v[i] = i > k ? a[i * n + k] / largest : 0;
      squares += v[i] * v[i];
    }
    v[k + 1] += copysign(sqrt(squares), v[k + 1]);
    const double scale = sqrt(2 / dot(v, v, n));
    for (int64_t i = k + 1; i < n; ++i) v[i] *= scale;
    /* a -= v w^T + w v^T with w = a v - v (v^T a v) / 2 */
    for (int64_t i = 0; i < n; ++i) w[i] = i < k ? 0 : dot(a + i * n + k, v + k, n - k);
    const double half = dot(v, w, n) / 2;
    for (int64_t i = k; i < n; ++i) w[i] -= half * v[i];
    for (int64_t i = k; i < n; ++i) {
      for (int64_t j = k; j < n; ++j) a[i * n + j] -= v[i] * w[j] + w[i] * v[j];
    }
    /* rows = (1 - v v^T) rows */
    memset(w, 0, (size_t)n * sizeof(double));
    for (int64_t i = k + 1; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) w[j] += v[i] * rows[i * n + j];
    }
    for (int64_t i = k + 1; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) rows[i * n + j] -= v[i] * w[j];
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    diagonal[i] = a[i * n + i];
    beside[i] = i + 1 < n ? a[(i + 1) * n + i] : 0;
  }
}

/* The tridiagonal matrix becomes diagonal; `rows` take part. 0: it does not, since something is not finite. */
static int diagonalise(double* d, double* e, double* rows, int64_t n) {
  for (int64_t low = 0; low < n; ++low) {
    for (int step = 0;; ++step) {
      int64_t high = low;
      while (high + 1 < n && fabs(e[high]) > DBL_EPSILON * (fabs(d[high]) + fabs(d[high + 1]))) ++high;
      if (high == low) break;
      if (step == MOST_STEPS || !isfinite(e[low])) return 0;
      /* The shift: the eigenvalue of the first two rows that is nearer to the first. */
      const double ratio = (d[low + 1] - d[low]) / (2 * e[low]);
      double g = d[high] - d[low] + e[low] / (ratio + copysign(hypot(ratio, 1), ratio));
      double sine = 1, cosine = 1, shift = 0;
      int64_t i = high - 1;
      for (; i >= low; --i) {
        const double f = sine * e[i], b = cosine * e[i], r = hypot(f, g);
        e[i + 1] = r;
        if (r == 0) {
          d[i + 1] -= shift;
          e[high] = 0;
          break;
        }
        sine = f / r;
        cosine = g / r;
        const double rest = d[i + 1] - shift, turn = (d[i] - rest) * sine + 2 * cosine * b;
        shift = sine * turn;
        d[i + 1] = rest + shift;
        g = cosine * turn - b;
        rotate(rows + i * n, rows + (i + 1) * n, cosine, sine, n);
      }
      if (i >= low) continue;
      d[low] -= shift;
      e[low] = g;
      e[high] = 0;
    }
  }
  return 1;
}

static int64_t work_of_eigh(int64_t m, int64_t n, int64_t columns) {
  (void)m, (void)columns;
  return 2 * n * n + 4 * n;
}

static void eigh(const quern_matrices* x) {
  const int64_t n = x->n;
  double *a = x->work, *rows = a + n * n, *d = rows + n * n, *e = d + n, *v = e + n, *w = v + n;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j)
      a[i * n + j] = a[j * n + i] = x->in[0][x->attribute == 'u' ? j * n + i : i * n + j];
  }
  tridiagonalise(a, rows, d, e, v, w, n);
  const int done = diagonalise(d, e, rows, n);
  for (int64_t place = 0; place < n; ++place) {
    int64_t best = place;
    for (int64_t i = place + 1; i < n; ++i) {
      if (d[i] < d[best]) best = i;
    }
    const double value = d[best];
    d[best] = d[place];
    d[place] = value;
    x->out[0][place] = done ? value : NAN;
    for (int64_t j = 0; j < n && best != place; ++j) {
      const double kept = rows[best * n + j];
      rows[best * n + j] = rows[place * n + j];
      rows[place * n + j] = kept;
    }
    const double sign = quern_sign_of(rows + place * n, 1, n);
    for (int64_t j = 0; j < n; ++j) x->out[1][j * n + place] = done ? sign * rows[place * n + j] : NAN;
  }
}

static int64_t work_of_svd(int64_t m, int64_t n, int64_t columns) {
  (void)columns;
  const int64_t k = m < n ? m : n, l = m < n ? n : m;
  return k * l + k * k + 2 * k;
}

/* A unit row that is orthogonal to the first `count` of `rows`. */
static void complete(double* rows, int64_t count, int64_t n) {
  double* row = rows + count * n;
  for (int64_t unit = 0; unit < n; ++unit) {
    for (int64_t i = 0; i < n; ++i) row[i] = i == unit;
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t r = 0; r < count; ++r) {
        const double part = dot(rows + r * n, row, n);
        for (int64_t i = 0; i < n; ++i) row[i] -= part * rows[r * n + i];
      }
    }
    const double size = sqrt(dot(row, row, n));
    if (size < 0.5 / sqrt((double)n)) continue;
    for (int64_t i = 0; i < n; ++i) row[i] /= size;
    return;
  }
}

/* The k rows of g, those of a or of its transpose, are turned by `turns` until they are orthogonal: g = turns^T s w. */
static void svd(const quern_matrices* x) {
  const int64_t m = x->m, n = x->n, k = m < n ? m : n, l = m < n ? n : m;
  const int wide = m < n;
  double *g = x->work, *turns = g + k * l, *sizes = turns + k * k;
  int finite = 1;
  double largest = 0;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const double value = x->in[0][i * n + j];
      g[wide ? i * l + j : j * l + i] = value;
      finite = finite && isfinite(value);
      largest = fmax(largest, fabs(value));
    }
  }
  const double unit = largest > 0 && finite ? largest : 1;
  for (int64_t i = 0; i < k * l; ++i) g[i] /= unit;
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < k; ++j) turns[i * k + j] = i == j;
  }
  int turned = finite;
  for (int sweep = 0; turned && sweep < MOST_SWEEPS; ++sweep) {
    turned = 0;
    for (int64_t i = 0; i < k; ++i) sizes[i] = dot(g + i * l, g + i * l, l);
    for (int64_t p = 0; p + 1 < k; ++p) {
      for (int64_t q = p + 1; q < k; ++q) {
        const double both = dot(g + p * l, g + q * l, l);
        if (fabs(both) <= DBL_EPSILON * sqrt(sizes[p] * sizes[q]) || both == 0) continue;
        turned = 1;
        const double ratio = (sizes[q] - sizes[p]) / (2 * both);
        const double tangent = copysign(1, ratio) / (fabs(ratio) + hypot(1, ratio));
        const double cosine = 1 / sqrt(1 + tangent * tangent), sine = cosine * tangent;
        rotate(g + p * l, g + q * l, cosine, sine, l);
        rotate(turns + p * k, turns + q * k, cosine, sine, k);
        sizes[p] = dot(g + p * l, g + p * l, l);
        sizes[q] = dot(g + q * l, g + q * l, l);
      }
    }
  }
  for (int64_t i = 0; i < k; ++i) sizes[i] = sqrt(dot(g + i * l, g + i * l, l));
  for (int64_t place = 0; place < k; ++place) { /* falling */
    int64_t best = place;
    for (int64_t i = place + 1; i < k; ++i) {
      if (sizes[i] > sizes[best]) best = i;
    }
    if (best == place) continue;
    const double size = sizes[best];
    sizes[best] = sizes[place];
    sizes[place] = size;
    rotate(g + best * l, g + place * l, 0, 1, l);
    rotate(turns + best * k, turns + place * k, 0, 1, k);
  }
  for (int64_t i = 0; i < k; ++i) {
    double* row = g + i * l;
    if (sizes[i] > DBL_EPSILON * sizes[0] * DBL_EPSILON) {
      for (int64_t j = 0; j < l; ++j) row[j] /= sizes[i];
    } else if (finite) {
      complete(g, i, l);
    }
    /* The sign is that of the column of u. */
    const double sign = quern_sign_of(wide ? turns + i * k : row, 1, m);
    x->out[1][i] = finite ? sizes[i] * unit : NAN;
    for (int64_t j = 0; j < m; ++j) x->out[0][j * k + i] = finite ? sign * (wide ? turns[i * k + j] : row[j]) : NAN;
    for (int64_t j = 0; j < n; ++j) x->out[2][i * n + j] = finite ? sign * (wide ? row[j] : turns[i * k + j]) : NAN;
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

KERNEL(eigh, work_of_eigh, eigh)
KERNEL(svd, work_of_svd, svd)
