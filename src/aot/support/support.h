/* What every compiled model shares: plain C, built to bitcode with Quern and linked into each object as internal
 * functions. The generated driver describes its model with these structs and wraps these functions in the names of its
 * header.
 *
 *   addition_init(out, memory, bytes, weights, length, runner)  calls  quern_model_init(&model, out, memory, ...)
 *   addition_step(self, inputs, outputs, LOGITS, PAST_SEQ, SEQ) calls  quern_model_step(&model, self, inputs, ...)
 * Everything here runs before the processor is known: it is compiled for the least one. No library is needed. */
#ifndef QUERN_AOT_SUPPORT_H_
#define QUERN_AOT_SUPPORT_H_

#include <stddef.h>
#include <stdint.h>

#include "quern/abi.h"
#include "rt/cpu.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quern_instance quern_instance;

/* One instruction-set level. */
typedef struct quern_level {
  const char* name;
  cpu_words needs;
  int32_t (*permit)(void); /* asks the system for more; not 0: granted. Or null */
  int64_t variants;
  /* Writes the dispatches of a variant's work that depends on the weights alone; returns their number. */
  int64_t (*once)(quern_instance* self, int64_t variant);
  /* Writes the dispatches of one step for sizes that are in range, and runs them; QUERN_OK or what went wrong. Sizes
   * that the step finds it writes behind those that it is given. */
  int32_t (*step)(quern_instance* self, const void* const* inputs, void* const* outputs, int64_t* values);
} quern_level;

typedef struct quern_model {
  int64_t fixed_bytes;   /* of the workspace, before the workers' part */
  int64_t scratch_bytes; /* of each worker; a multiple of 64 */
  int64_t state_offset, state_bytes;
  int64_t weight_bytes; /* length of the model file */
  int64_t header_bytes; /* of it: everything before the first tensor */
  uint64_t header_hash;
  const void* embedded; /* the model file in this object, or null */
  int64_t input_count, output_count;
  int64_t symbol_count;  /* that a step is given */
  const int64_t* ranges; /* lowest and highest value of each symbol */
  int64_t levels;
  const quern_level* level; /* least first */
} quern_model;

/* The start of every workspace; the tables of a step, state, memory for intermediate values and scratch follow. */
struct quern_instance {
  const uint8_t* weights;
  const quern_level* level;
  quern_dispatch* dispatches;
  void** scratch; /* one a worker */
  quern_runner runner;
  const volatile int32_t* cancel; /* not 0 there: a step is to end; or null */
};
enum { QUERN_INSTANCE_BYTES = 128 };

/* -1: not a number of workers. */
int64_t quern_model_workspace_bytes(const quern_model* model, int64_t workers);
int32_t quern_model_init(const quern_model* model, void** out, void* workspace, size_t bytes, const void* weights,
                         size_t weight_bytes, const quern_runner* runner, int32_t zeroed);
int32_t quern_model_step(const quern_model* model, quern_instance* self, const void* const* inputs,
                         void* const* outputs, int64_t* values);
/* For the generated driver: runs dispatches of the step under way. QUERN_OK, or QUERN_ERROR_CANCELLED. */
int32_t quern_model_run(quern_instance* self, int64_t first, int64_t count);
int32_t quern_model_poll(const quern_instance* self);
void quern_model_cancel_when(quern_instance* self, const volatile int32_t* flag);
int32_t quern_model_reset(const quern_model* model, quern_instance* self);
/* Whether every symbol that a step is given is in its range. */
int32_t quern_model_in_range(const quern_model* model, const int64_t* values);
const char* quern_model_level(const quern_instance* self);
const char* quern_model_error(int32_t code);
int32_t quern_permit_amx(void);

/* Of the bytes before the first tensor: tells one model file from another, is no defence against forgery. */
static inline uint64_t quern_header_hash(const uint8_t* bytes, int64_t count) {
  uint64_t hash = 0x9e3779b97f4a7c15u ^ (uint64_t)count;
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t word = 0;
    for (int b = 0; b < 8; ++b) word |= (uint64_t)bytes[i + b] << (8 * b);
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  for (; i < count; ++i) {
    hash = (hash ^ bytes[i]) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

#ifdef __cplusplus
}
#endif

#endif /* QUERN_AOT_SUPPORT_H_ */
