/* Continues a prompt with a compiled model, as `quern run --ids --logits` does: C99 and C++, the model's header and
 * nothing of Quern's, but with -DWORKERS=n its runtime archive.
 *
 *   driver MODEL.gguf 1,261,269,262,270 TOKENS LOGITS_FILE
 * MODEL.gguf is "-" where the weights are in the object. Prints the ids, and the CPU level to standard error. Behind
 * everything the model is handed lies a page that nobody may touch. */
#define _DEFAULT_SOURCE /* mmap */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "model.h"
#ifdef WORKERS
#include "quern/rt.h"
#endif

#define MOST_IDS 4096

/* Aligned to 64 bytes; ends, but for what that takes, where the forbidden page begins. */
static void* guarded(size_t bytes) {
  const size_t page = 4096, kept = (bytes + 63) / 64 * 64, whole = (kept + page - 1) / page * page;
  char* start = (char*)mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == (char*)MAP_FAILED || mprotect(start + whole, page, PROT_NONE) != 0) exit(2);
  return start + (whole - kept);
}

static int fail(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  return 1;
}

#ifndef WORKERS
static const void* read_file(const char* path, size_t* bytes) {
  FILE* file = fopen(path, "rb");
  char* data;
  if (file == NULL) return NULL;
  fseek(file, 0, SEEK_END);
  *bytes = (size_t)ftell(file);
  data = (char*)guarded(*bytes);
  rewind(file);
  if (fread(data, 1, *bytes, file) != *bytes) return NULL;
  fclose(file);
  return data;
}
#endif

/* One step: logits of every row. */
static int32_t step(model* m, const int32_t* ids, int64_t count, int64_t past, float* logits) {
  const void* inputs[1];
  void* outputs[1];
  inputs[0] = ids;
  outputs[0] = logits;
  return model_step(m, inputs, outputs, count, past, count);
}

int main(int argc, char** argv) {
  static int32_t ids[MOST_IDS];
  int64_t prompt = 0, position = 0, row = 0, tokens, vocabulary;
  size_t weight_bytes = 0, workspace_bytes;
  const void* weights = NULL;
  void* workspace;
  model* m;
  float* logits;
  FILE* out;
  int32_t error;
  const char* at;
#ifdef WORKERS
  quern_file file;
  quern_pool* pool = quern_pool_start(WORKERS);
  quern_runner runner;
  const quern_runner* threads = &runner;
  if (pool == NULL) return fail("pool", "no threads");
  runner = quern_pool_runner(pool);
#else
  const quern_runner* threads = NULL;
#endif
  if (argc != 5) return fail("usage", "driver MODEL IDS TOKENS LOGITS");
  for (at = argv[2]; prompt < MOST_IDS; ++at) {
    ids[prompt++] = (int32_t)strtol(at, (char**)&at, 10);
    if (*at != ',') break;
  }
  tokens = strtol(argv[3], NULL, 10);
  if (strcmp(argv[1], "-") != 0) {
#ifdef WORKERS
    if (quern_map(argv[1], &file) != 0) return fail(argv[1], "cannot be mapped");
    weights = file.data;
    weight_bytes = file.bytes;
#else
    weights = read_file(argv[1], &weight_bytes);
    if (weights == NULL) return fail(argv[1], "cannot be read");
#endif
  }
  workspace_bytes = (size_t)model_workspace_bytes(threads == NULL ? 1 : threads->workers);
  workspace = guarded(workspace_bytes);
#if defined(WORKERS) && WORKERS == 2
  memset(workspace, 0, workspace_bytes);
  error = model_init_zeroed(&m, workspace, workspace_bytes, weights, weight_bytes, threads);
#else
  memset(workspace, 0xa5, workspace_bytes); /* init may not count on zeros */
  error = model_init(&m, workspace, workspace_bytes, weights, weight_bytes, threads);
#endif
  if (error != QUERN_OK) return fail("init", model_error(error));
  fprintf(stderr, "%s\n", model_level(m));

  vocabulary = model_output_bytes(0, 1, 0, 1) / (int64_t)sizeof(float);
  logits = (float*)guarded((size_t)(MODEL_SEQ_MAX * vocabulary) * sizeof(float));
  out = fopen(argv[4], "wb");
  if (out == NULL) return fail(argv[4], "cannot be written");
  while (position < prompt) {
    const int64_t count = prompt - position < MODEL_SEQ_MAX ? prompt - position : MODEL_SEQ_MAX;
    error = step(m, ids + position, count, position, logits);
    if (error != QUERN_OK) return fail("step", model_error(error));
    fwrite(logits, sizeof(float), (size_t)(count * vocabulary), out);
    position += count;
    row = count - 1;
  }
  while (tokens-- > 0) {
    const float* last = logits + row * vocabulary;
    int32_t best = 0, id;
    for (id = 1; id < vocabulary; ++id) {
      if (last[id] > last[best]) best = id;
    }
    printf("%d%s", (int)best, tokens > 0 ? " " : "\n");
    if (tokens == 0) break;
    error = step(m, &best, 1, position, logits);
    if (error != QUERN_OK) return fail("step", model_error(error));
    fwrite(logits, sizeof(float), (size_t)vocabulary, out);
    ++position;
    row = 0;
  }
  fclose(out);
#ifdef WORKERS
  quern_pool_stop(pool);
  if (weights != NULL) quern_unmap(&file);
#endif
  return 0;
}
