/* What the functions of linear algebra have in common: batches as matrices of doubles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "linear/linear_algebra.h"
#include "quern/call.h"

static void load(const void* tensor, int f64, int64_t at, int64_t elements, double* to) {
  if (f64) {
    memcpy(to, (const double*)tensor + at * elements, (size_t)elements * sizeof(double));
    return;
  }
  const float* from = (const float*)tensor + at * elements;
  for (int64_t i = 0; i < elements; ++i) to[i] = from[i];
}

static void store(void* tensor, int f64, int64_t at, int64_t elements, const double* from) {
  if (f64) {
    memcpy((double*)tensor + at * elements, from, (size_t)elements * sizeof(double));
    return;
  }
  float* to = (float*)tensor + at * elements;
  for (int64_t i = 0; i < elements; ++i) to[i] = (float)from[i];
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
      load(quern_operand(args, t), f64, batch, sizes[t], tensors[t]);
    const int done = memory != 0 && compute(&one);
    for (int64_t r = 0; r < call->results; ++r) {
      const int64_t elements = sizes[call->operands + r];
      const double nan = NAN;
      for (int64_t i = 0; !done && i < elements; ++i) store(quern_result(args, r), f64, batch * elements + i, 1, &nan);
      if (done) store(quern_result(args, r), f64, batch, elements, one.out[r]);
    }
  }
  free(memory);
}
