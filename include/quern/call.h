/* What a C function finds that computes an op of the caller's own (quern/custom.h registers it). It is a quern_kernel
 * of quern/abi.h, whose chunks are the parts of the work: it computes parts [begin, end) of quern_call_parts(args), on
 * any thread, in any order. Denormals count as zero meanwhile, and `scratch` holds nothing.
 *
 *   void halve(const quern_args* args, void* scratch, int64_t begin, int64_t end) {
 *     const int64_t n = quern_operand_extents(args, 0)[0], parts = quern_call_parts(args);
 *     const float* x = quern_operand(args, 0);
 *     float* y = quern_result(args, 0);
 *     for (int64_t i = n * begin / parts; i < n * end / parts; ++i) y[i] = x[i] / 2;
 *   }
 * Plain C. Tensors are dense and row-major; bools are bytes of 0 and 1. */
#ifndef QUERN_CALL_H_
#define QUERN_CALL_H_

#include "quern/abi.h"

/* buffers[0] of such a call: constants of the op, of which the tables below follow one another. */
typedef struct quern_call {
  int64_t operands, results, parts, attribute_bytes;
  /* int64_t first[operands + results + 1]: where in `symbols` the extents of a tensor begin
   * uint8_t attributes[attribute_bytes] */
} quern_call;

static inline const quern_call* quern_call_of(const quern_args* args) { return (const quern_call*)args->buffers[0]; }
static inline int64_t quern_call_parts(const quern_args* args) { return quern_call_of(args)->parts; }
static inline const int64_t* quern_call_first(const quern_args* args) {
  return (const int64_t*)(quern_call_of(args) + 1);
}

static inline const void* quern_operand(const quern_args* args, int64_t operand) { return args->buffers[1 + operand]; }
static inline void* quern_result(const quern_args* args, int64_t result) {
  return args->buffers[1 + quern_call_of(args)->operands + result];
}

/* One number a dimension, outermost first; the rank is how many there are. */
static inline const int64_t* quern_operand_extents(const quern_args* args, int64_t operand) {
  return args->symbols + quern_call_first(args)[operand];
}
static inline int64_t quern_operand_rank(const quern_args* args, int64_t operand) {
  return quern_call_first(args)[operand + 1] - quern_call_first(args)[operand];
}
static inline const int64_t* quern_result_extents(const quern_args* args, int64_t result) {
  return quern_operand_extents(args, quern_call_of(args)->operands + result);
}
static inline int64_t quern_result_rank(const quern_args* args, int64_t result) {
  return quern_operand_rank(args, quern_call_of(args)->operands + result);
}

/* The op's attribute `attrs`, as many bytes as attribute_bytes says, aligned to 8. */
static inline const void* quern_call_attributes(const quern_args* args) {
  const quern_call* call = quern_call_of(args);
  return quern_call_first(args) + call->operands + call->results + 1;
}

#endif /* QUERN_CALL_H_ */
