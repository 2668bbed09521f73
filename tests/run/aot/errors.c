/* Provokes every error of a compiled model's header, and checks what it says of itself: errors MODEL.gguf [embedded]
 * The model is one of the llama family with weights of a page and more. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "quern/rt.h"

static int failures = 0;

static void expect(int64_t got, int64_t wanted, const char* what) {
  if (got == wanted) return;
  fprintf(stderr, "%s: %lld, not %lld\n", what, (long long)got, (long long)wanted);
  ++failures;
}

static void run_all(void* self, const quern_dispatch* dispatches, int64_t count, void* const* scratch) {
  ++*(int*)self;
  for (int64_t i = 0; i < count; ++i) {
    if (dispatches[i].chunks > 0) dispatches[i].kernel(dispatches[i].args, scratch[0], 0, dispatches[i].chunks);
  }
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int embedded = argc > 2;
  quern_file file;
  expect(quern_map(argv[1], &file), 0, "map");
  char* copy = (char*)malloc(file.bytes + 64);
  char* changed = copy + (64 - (uintptr_t)copy % 64);
  memcpy(changed, file.data, file.bytes);
  const size_t size = (size_t)model_workspace_bytes(3);
  char* raw = (char*)malloc(size + 128);
  char* memory = raw + (64 - (uintptr_t)raw % 64);
  model* m = (model*)memory;

  /* Sizes. */
  expect(MODEL_WEIGHT_BYTES, (int64_t)file.bytes, "weight bytes");
  expect(model_workspace_bytes(0), -1, "no workers");
  expect(model_workspace_bytes(-7), -1, "negative workers");
  expect(model_workspace_bytes(65537), -1, "too many workers");
  expect(model_workspace_bytes(INT64_MAX), -1, "endless workers");
  expect(model_workspace_bytes(2) > model_workspace_bytes(1), 1, "workers need memory");
  expect(model_workspace_bytes(1) % 64, 0, "a whole number of lines");

  /* The ports. */
  int ports = 0;
  while (model_inputs[ports].name != NULL) ++ports;
  expect(ports, MODEL_INPUTS, "inputs");
  for (ports = 0; model_outputs[ports].name != NULL;) ++ports;
  expect(ports, MODEL_OUTPUTS, "outputs");
  expect(strcmp(model_inputs[0].name, "ids"), 0, "input name");
  expect(strcmp(model_inputs[0].dtype, "i32"), 0, "input dtype");
  expect(strcmp(model_inputs[0].shape, "[SEQ]"), 0, "input shape");
  expect(strcmp(model_outputs[0].dtype, "f32"), 0, "output dtype");
  expect(model_input_bytes(0, 1, 0, 5), 20, "input bytes");
  expect(model_output_bytes(0, 2, 0, 2), 2 * model_output_bytes(0, 1, 0, 1), "output bytes");
  expect(model_input_bytes(1, 1, 0, 1), -1, "no such input");
  expect(model_input_bytes(-1, 1, 0, 1), -1, "no such input");
  expect(model_output_bytes(MODEL_OUTPUTS, 1, 0, 1), -1, "no such output");
  expect(model_output_bytes(0, 0, 0, 1), -1, "size out of range");

  /* Init. */
#define INIT(out, workspace, bytes, weights, length, runner) model_init(out, workspace, bytes, weights, length, runner)
  expect(INIT(NULL, memory, size, file.data, file.bytes, NULL), QUERN_ERROR_NULL, "null out");
  expect(INIT(&m, NULL, size, file.data, file.bytes, NULL), QUERN_ERROR_NULL, "null workspace");
  expect(m == NULL, 1, "out is null after an error");
  expect(INIT(&m, memory, size, NULL, 0, NULL), embedded ? QUERN_OK : QUERN_ERROR_NULL, "null weights");
  expect(INIT(&m, memory + 32, size, file.data, file.bytes, NULL), QUERN_ERROR_WORKSPACE_ALIGN, "workspace alignment");
  expect(INIT(&m, memory, 0, file.data, file.bytes, NULL), QUERN_ERROR_WORKSPACE_SIZE, "empty workspace");
  expect(INIT(&m, memory, (size_t)model_workspace_bytes(1) - 1, file.data, file.bytes, NULL),
         QUERN_ERROR_WORKSPACE_SIZE, "small workspace");
  expect(INIT(&m, memory, size, changed + 16, file.bytes, NULL), QUERN_ERROR_WEIGHTS_ALIGN, "weights alignment");
  expect(INIT(&m, memory, size, file.data, file.bytes - 1, NULL), QUERN_ERROR_WEIGHTS_SIZE, "short weights");
  changed[40] ^= 1;
  expect(INIT(&m, memory, size, changed, file.bytes, NULL), QUERN_ERROR_WEIGHTS_OTHER, "another file");
  changed[40] ^= 1;
  expect(INIT(&m, memory, size, changed, file.bytes, NULL), QUERN_OK, "a copy of the file");
  expect(m != NULL, 1, "a model");

  int calls = 0;
  quern_runner runner = {NULL, &calls, 1};
  expect(INIT(&m, memory, size, file.data, file.bytes, &runner), QUERN_ERROR_WORKERS, "a runner without a function");
  runner.run = run_all;
  runner.workers = 0;
  expect(INIT(&m, memory, size, file.data, file.bytes, &runner), QUERN_ERROR_WORKERS, "no workers");
  runner.workers = INT64_MAX;
  expect(INIT(&m, memory, size, file.data, file.bytes, &runner), QUERN_ERROR_WORKERS, "endless workers");
  runner.workers = 3;
  expect(INIT(&m, memory, size - 1, file.data, file.bytes, &runner), QUERN_ERROR_WORKSPACE_SIZE,
         "workspace of three workers");
  expect(INIT(&m, memory, size, file.data, file.bytes, &runner), QUERN_OK, "a runner");

  /* Steps. */
  int32_t ids[2] = {1, 2};
  float* logits = (float*)malloc((size_t)model_output_bytes(0, 2, 0, 2) + 1);
  float* again = (float*)malloc((size_t)model_output_bytes(0, 2, 0, 2) + 1);
  const void* inputs[1] = {ids};
  void* outputs[1] = {logits};
  const int64_t most = MODEL_SEQ_MAX, past = MODEL_PAST_SEQ_MAX;
  logits[0] = 12345;
  calls = 0;
  expect(model_step(NULL, inputs, outputs, 1, 0, 1), QUERN_ERROR_NULL, "null model");
  expect(model_step(m, NULL, outputs, 1, 0, 1), QUERN_ERROR_NULL, "null inputs");
  expect(model_step(m, inputs, NULL, 1, 0, 1), QUERN_ERROR_NULL, "null outputs");
  inputs[0] = NULL;
  expect(model_step(m, inputs, outputs, 1, 0, 1), QUERN_ERROR_NULL, "null input");
  inputs[0] = ids;
  outputs[0] = NULL;
  expect(model_step(m, inputs, outputs, 1, 0, 1), QUERN_ERROR_NULL, "null output");
  outputs[0] = logits;
  expect(model_step(m, inputs, outputs, 1, 0, 0), QUERN_ERROR_SYMBOL_RANGE, "no tokens");
  expect(model_step(m, inputs, outputs, 1, 0, most + 1), QUERN_ERROR_SYMBOL_RANGE, "too many tokens");
  expect(model_step(m, inputs, outputs, 1, 0, INT64_MIN), QUERN_ERROR_SYMBOL_RANGE, "endless tokens");
  expect(model_step(m, inputs, outputs, 1, -1, 1), QUERN_ERROR_SYMBOL_RANGE, "negative past");
  expect(model_step(m, inputs, outputs, 1, past + 1, 1), QUERN_ERROR_SYMBOL_RANGE, "past beyond the context");
  expect(model_step(m, inputs, outputs, 0, 0, 1), QUERN_ERROR_SYMBOL_RANGE, "no logits");
  expect(model_step(m, inputs, outputs, 2, 0, 1), QUERN_ERROR_SIZES, "more logits than tokens");
  expect(model_step(m, inputs, outputs, most, 0, most - 1), QUERN_ERROR_SIZES, "more logits than many tokens");
  expect(logits[0] == 12345, 1, "nothing is written after an error");
  expect(calls, 0, "nothing runs after an error");

  expect(model_step(m, inputs, outputs, 2, 0, 2), QUERN_OK, "a step");
  expect(calls > 0, 1, "the runner runs");
  outputs[0] = again;
  expect(model_reset(NULL), QUERN_ERROR_NULL, "reset of null");
  expect(model_reset(m), QUERN_OK, "reset");
  expect(model_step(m, inputs, outputs, 2, 0, 2), QUERN_OK, "a step after reset");
  expect(memcmp(logits, again, (size_t)model_output_bytes(0, 2, 0, 2)), 0, "the same logits");

  /* Words. */
  expect(strlen(model_level(m)) > 0, 1, "a level");
  expect((int64_t)strlen(model_level(NULL)), 0, "no level");
  for (int32_t code = QUERN_OK; code <= QUERN_ERROR_WORKERS; ++code) {
    expect(strcmp(model_error(code), "an unknown error") != 0, 1, "words of a code");
  }
  expect(strcmp(model_error(-1), "an unknown error"), 0, "words of no code");

  /* The archive's own. */
  quern_file none = {NULL, 0};
  expect(quern_map("/does/not/exist", &none) != 0, 1, "map of no file");
  expect(quern_map("/", &none) != 0, 1, "map of a folder");
  expect(quern_map("/dev/null", &none) != 0 && none.data == NULL, 1, "map of a device");
  quern_unmap(&none);
  expect(quern_thread_count() >= 1, 1, "threads");
  expect(quern_pool_start(-1) == NULL, 1, "a negative pool");
  quern_pool_stop(NULL);

  quern_unmap(&file);
  free(logits);
  free(again);
  free(raw);
  free(copy);
  return failures == 0 ? 0 : 1;
}
