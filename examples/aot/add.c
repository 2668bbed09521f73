/* Adds two numbers with the bundled model, compiled ahead of time; no compiler and no Quern at run time.
 *
 *   add addition.gguf 27+58=      prints 85 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addition.h"
#include "quern/kit.h"
#include "quern/rt.h"

static int fail(const char* what) {
  fprintf(stderr, "add: %s\n", what);
  return 1;
}

int main(int argc, char** argv) {
  int32_t ids[ADDITION_SEQ_MAX];
  float logits[ADDITION_VOCABULARY];
  const void* inputs[ADDITION_INPUTS] = {ids};
  void* outputs[ADDITION_OUTPUTS] = {logits};
  const quern_sampling likeliest = {0};
  int64_t position = 0, count;
  quern_file weights;
  if (argc != 3) return fail("usage: add addition.gguf 27+58=");
  count = quern_encode(&addition_vocabulary, argv[2], strlen(argv[2]), QUERN_TEXT_BEGIN, ids, ADDITION_SEQ_MAX);
  if (count < 1 || count > ADDITION_SEQ_MAX) return fail("the text does not fit one step");
  if (quern_map(argv[1], &weights) != 0) return fail("cannot read the model file");
  quern_sampler* sampler = quern_sampler_start(&likeliest, ADDITION_VOCABULARY);

  /* One piece of memory for everything, 64-byte aligned; one thread. */
  const size_t bytes = (size_t)addition_workspace_bytes(1);
  char* memory = malloc(bytes + 63);
  if (memory == NULL || sampler == NULL) return fail("no memory");
  addition* model;
  int32_t error = addition_init(&model, memory + (-(uintptr_t)memory & 63), bytes, weights.data, weights.bytes, NULL);

  /* The whole prompt in one step, then a token a step; each time the logits of the last position alone. */
  while (error == QUERN_OK && position + count <= ADDITION_SEQ_MAX) {
    error = addition_step(model, inputs, outputs, 1, position, count);
    if (error != QUERN_OK) break;
    position += count;
    count = 1;
    ids[0] = quern_sampler_next(sampler, logits);
    if (quern_vocabulary_is_end(&addition_vocabulary, ids[0])) break;
    const char* piece;
    const int64_t size = quern_piece(&addition_vocabulary, ids[0], 0, &piece);
    fwrite(piece, 1, (size_t)size, stdout);
  }
  puts("");
  quern_sampler_stop(sampler);
  free(memory);
  quern_unmap(&weights);
  return error == QUERN_OK ? 0 : fail(addition_error(error));
}
