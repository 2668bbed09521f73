#include "aot/support/support.h"

#include "rt/float_mode.h"

static int64_t round_up_64(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }

/* More threads than any machine has; keeps the sizes below far from their limits. */
enum { MOST_WORKERS = 65536 };

int64_t quern_model_workspace_bytes(const quern_model* model, int64_t workers) {
  if (workers < 1 || workers > MOST_WORKERS) return -1;
  return model->fixed_bytes + round_up_64(workers * (int64_t)sizeof(void*)) + workers * model->scratch_bytes;
}

/* ---- the processor */

#if defined(__x86_64__)
int32_t quern_permit_amx(void) { return cpu_permit_tiles(); }
#endif

/* The last level whose needs are met, or null. */
static const quern_level* choose_level(const quern_model* model) {
  cpu_words cpu;
  cpu_read(&cpu);
  for (int64_t l = model->levels - 1; l >= 0; --l) {
    const quern_level* level = &model->level[l];
    if (cpu_has(&cpu, &level->needs) && (level->permit == 0 || level->permit())) return level;
  }
  return 0;
}

/* ---- running */

/* Without threads: every chunk in order, denormals flushed as everywhere. */
static void run_alone(const quern_dispatch* dispatches, int64_t count, void* scratch) {
  const uint64_t saved = flush_denormals();
  for (int64_t i = 0; i < count; ++i) {
    const quern_dispatch* d = &dispatches[i];
    if (d->chunks > 0) d->kernel(d->args, scratch, 0, d->chunks);
  }
  restore_denormals(saved);
}

/* Launches between two looks at the flag. */
enum { LAUNCHES_OF_A_LOOK = 8 };

int32_t quern_model_poll(const quern_instance* self) {
  return self->cancel != 0 && *self->cancel != 0 ? QUERN_ERROR_CANCELLED : QUERN_OK;
}

int32_t quern_model_run(quern_instance* self, int64_t first, int64_t count) {
  const int64_t at_once = self->cancel != 0 ? LAUNCHES_OF_A_LOOK : count;
  for (int64_t end = first + count; first < end; first += at_once) {
    if (quern_model_poll(self) != QUERN_OK) return QUERN_ERROR_CANCELLED;
    const int64_t now = end - first < at_once ? end - first : at_once;
    if (self->runner.run != 0)
      self->runner.run(self->runner.self, self->dispatches + first, now, self->scratch);
    else
      run_alone(self->dispatches + first, now, self->scratch[0]);
  }
  return QUERN_OK;
}

void quern_model_cancel_when(quern_instance* self, const volatile int32_t* flag) {
  if (self != 0) self->cancel = flag;
}

/* ---- the functions of the header */

static int32_t check_weights(const quern_model* model, const uint8_t* weights, size_t bytes) {
  if ((uintptr_t)weights % 32 != 0) return QUERN_ERROR_WEIGHTS_ALIGN;
  if ((int64_t)bytes != model->weight_bytes) return QUERN_ERROR_WEIGHTS_SIZE;
  return quern_header_hash(weights, model->header_bytes) == model->header_hash ? QUERN_OK : QUERN_ERROR_WEIGHTS_OTHER;
}

int32_t quern_model_reset(const quern_model* model, quern_instance* self) {
  if (self == 0) return QUERN_ERROR_NULL;
  uint8_t* state = (uint8_t*)self + model->state_offset;
  for (int64_t i = 0; i < model->state_bytes; ++i) state[i] = 0;
  return QUERN_OK;
}

int32_t quern_model_init(const quern_model* model, void** out, void* workspace, size_t bytes, const void* weights,
                         size_t weight_bytes, const quern_runner* runner, int32_t zeroed) {
  if (out == 0) return QUERN_ERROR_NULL;
  *out = 0;
  if (workspace == 0) return QUERN_ERROR_NULL;
  if ((uintptr_t)workspace % 64 != 0) return QUERN_ERROR_WORKSPACE_ALIGN;
  const int64_t workers = runner == 0 ? 1 : runner->workers;
  const int64_t needed = quern_model_workspace_bytes(model, workers);
  if (needed < 0 || (runner != 0 && runner->run == 0)) return QUERN_ERROR_WORKERS;
  if (bytes < (size_t)needed) return QUERN_ERROR_WORKSPACE_SIZE;
  if (weights == 0 && model->embedded != 0) {
    weights = model->embedded;
  } else {
    if (weights == 0 && model->weight_bytes > 0) return QUERN_ERROR_NULL;
    const int32_t error = check_weights(model, (const uint8_t*)weights, weight_bytes);
    if (error != QUERN_OK) return error;
  }
  const quern_level* level = choose_level(model);
  if (level == 0) return QUERN_ERROR_CPU;

  quern_instance* self = (quern_instance*)workspace;
  uint8_t* base = (uint8_t*)workspace;
  self->weights = (const uint8_t*)weights;
  self->level = level;
  self->dispatches = (quern_dispatch*)(base + QUERN_INSTANCE_BYTES);
  self->scratch = (void**)(base + model->fixed_bytes);
  self->runner.run = runner == 0 ? 0 : runner->run;
  self->runner.self = runner == 0 ? 0 : runner->self;
  self->runner.workers = workers;
  self->cancel = 0;
  uint8_t* scratch = base + model->fixed_bytes + round_up_64(workers * (int64_t)sizeof(void*));
  for (int64_t w = 0; w < workers; ++w) self->scratch[w] = scratch + w * model->scratch_bytes;
  if (!zeroed) quern_model_reset(model, self);
  for (int64_t v = 0; v < level->variants; ++v) {
    const int64_t count = level->once(self, v);
    if (count > 0) quern_model_run(self, 0, count);
  }
  *out = self;
  return QUERN_OK;
}

int32_t quern_model_in_range(const quern_model* model, const int64_t* values) {
  for (int64_t s = 0; s < model->symbol_count; ++s) {
    if (values[s] < model->ranges[2 * s] || values[s] > model->ranges[2 * s + 1]) return 0;
  }
  return 1;
}

static int all_given(const void* const* pointers, int64_t count) {
  if (pointers == 0) return count == 0;
  for (int64_t i = 0; i < count; ++i) {
    if (pointers[i] == 0) return 0;
  }
  return 1;
}

int32_t quern_model_step(const quern_model* model, quern_instance* self, const void* const* inputs,
                         void* const* outputs, int64_t* values) {
  if (self == 0 || !all_given(inputs, model->input_count) ||
      !all_given((const void* const*)outputs, model->output_count)) {
    return QUERN_ERROR_NULL;
  }
  if (!quern_model_in_range(model, values)) return QUERN_ERROR_SYMBOL_RANGE;
  return self->level->step(self, inputs, outputs, values);
}

const char* quern_model_level(const quern_instance* self) { return self == 0 ? "" : self->level->name; }

const char* quern_model_error(int32_t code) {
  switch (code) {
    case QUERN_OK: return "no error";
    case QUERN_ERROR_NULL: return "a pointer that is needed is null";
    case QUERN_ERROR_WORKSPACE_ALIGN: return "the workspace is not aligned to 64 bytes";
    case QUERN_ERROR_WORKSPACE_SIZE: return "the workspace is too small for this number of workers";
    case QUERN_ERROR_WEIGHTS_ALIGN: return "the weights are not aligned to 32 bytes";
    case QUERN_ERROR_WEIGHTS_SIZE: return "the weights have another length than the file that was compiled";
    case QUERN_ERROR_WEIGHTS_OTHER: return "the weights are another file than the one that was compiled";
    case QUERN_ERROR_CPU: return "this processor, or its system, runs none of the compiled levels";
    case QUERN_ERROR_SYMBOL_RANGE: return "a size is outside the range it was compiled for";
    case QUERN_ERROR_SIZES: return "the sizes do not go together";
    case QUERN_ERROR_WORKERS: return "a runner without a function, or not with 1 to 65536 workers";
    case QUERN_ERROR_TRIPS: return "a loop needs more trips than it may make";
    case QUERN_ERROR_CANCELLED: return "the step was cancelled";
    default: return "an unknown error";
  }
}
