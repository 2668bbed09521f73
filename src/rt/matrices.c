/* What the functions of linear algebra have in common: batches as matrices of doubles, and the product that their
 * blocked forms spend their time in. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quern/call.h"
#include "rt/linear_algebra.h"

enum { ROWS = 4, COLUMNS = 256 };

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("default", "arch=haswell", "arch=skylake-avx512")))
#endif
static void
subtract_rows(double* restrict c, int64_t ldc, const double* restrict a, int64_t lda, const double* restrict b,
              int64_t ldb, int64_t n, int64_t k) {
  for (int64_t p = 0; p < k; ++p) {
    const double* restrict row = b + p * ldb;
    const double a0 = a[p], a1 = a[lda + p], a2 = a[2 * lda + p], a3 = a[3 * lda + p];
    for (int64_t j = 0; j < n; ++j) {
      const double x = row[j];
      c[j] -= a0 * x;
      c[ldc + j] -= a1 * x;
      c[2 * ldc + j] -= a2 * x;
      c[3 * ldc + j] -= a3 * x;
    }
  }
}

void quern_subtract_product(double* c, int64_t ldc, const double* a, int64_t lda, const double* b, int64_t ldb,
                            int64_t m, int64_t n, int64_t k) {
  for (int64_t j = 0; j < n; j += COLUMNS) {
    const int64_t width = n - j < COLUMNS ? n - j : COLUMNS;
    int64_t i = 0;
    for (; i + ROWS <= m; i += ROWS) subtract_rows(c + i * ldc + j, ldc, a + i * lda, lda, b + j, ldb, width, k);
    for (; i < m; ++i) {
      for (int64_t p = 0; p < k; ++p) {
        const double factor = a[i * lda + p];
        for (int64_t l = 0; l < width; ++l) c[i * ldc + j + l] -= factor * b[p * ldb + j + l];
      }
    }
  }
}

void quern_load(const void* tensor, int f64, int64_t at, int64_t elements, double* to) {
  if (f64) {
    memcpy(to, (const double*)tensor + at * elements, (size_t)elements * sizeof(double));
    return;
  }
  const float* from = (const float*)tensor + at * elements;
  for (int64_t i = 0; i < elements; ++i) to[i] = from[i];
}

void quern_store(void* tensor, int f64, int64_t at, int64_t elements, const double* from) {
  if (f64) {
    memcpy((double*)tensor + at * elements, from, (size_t)elements * sizeof(double));
    return;
  }
  float* to = (float*)tensor + at * elements;
  for (int64_t i = 0; i < elements; ++i) to[i] = (float)from[i];
}

double quern_sign_of(const double* vector, int64_t step, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += vector[i * step] / ((double)i + 3.14159265358979323846);
  return sum < 0 ? -1 : 1;
}

static int64_t product(const int64_t* extents, int64_t count) {
  int64_t all = 1;
  for (int64_t d = 0; d < count; ++d) all *= extents[d];
  return all;
}

void quern_for_batches(const quern_args* args, int64_t begin, int64_t end, int f64, quern_work_elements* work,
                       quern_compute* compute) {
  const quern_call* call = quern_call_of(args);
  const int64_t *a = quern_operand_extents(args, 0), rank = quern_operand_rank(args, 0);
  const int64_t batches = product(a, rank - 2), parts = call->parts;
  const int64_t first = batches * begin / parts, last = batches * end / parts;
  if (first >= last) return;
  quern_matrices one = {.m = a[rank - 2], .n = a[rank - 1]};
  if (call->attribute_bytes > 0) one.attribute = *(const char*)quern_call_attributes(args);
  int64_t sizes[5], total = 0;
  for (int64_t t = 0; t < call->operands + call->results; ++t) {
    sizes[t] = product(quern_operand_extents(args, t), quern_operand_rank(args, t)) / batches;
    total += sizes[t];
  }
  if (call->operands > 1) one.columns = one.n == 0 ? 0 : sizes[1] / one.n;
  double* memory = malloc((size_t)(total + work(one.m, one.n, one.columns) + 1) * sizeof(double));
  double* at = memory;
  double* tensors[5] = {0};
  for (int64_t t = 0; memory != 0 && t < call->operands + call->results; ++t) {
    tensors[t] = at;
    at += sizes[t];
  }
  one.work = at;
  for (int64_t t = 0; t < call->operands; ++t) one.in[t] = tensors[t];
  for (int64_t r = 0; r < call->results; ++r) one.out[r] = tensors[call->operands + r];
  for (int64_t batch = first; batch < last; ++batch) {
    for (int64_t t = 0; memory != 0 && t < call->operands; ++t)
      quern_load(quern_operand(args, t), f64, batch, sizes[t], tensors[t]);
    if (memory != 0) compute(&one);
    for (int64_t r = 0; r < call->results; ++r) {
      const int64_t elements = sizes[call->operands + r];
      const double nan = NAN;
      for (int64_t i = 0; memory == 0 && i < elements; ++i)
        quern_store(quern_result(args, r), f64, batch * elements + i, 1, &nan);
      if (memory != 0) quern_store(quern_result(args, r), f64, batch, elements, one.out[r]);
    }
  }
  free(memory);
}
