/* Adds two numbers with the bundled model, compiled ahead of time; no compiler and no Quern at run time.
 *
 *   add addition.gguf 27+58=      prints 85 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addition.h"
#include "quern/rt.h"

/* The model's tokens: one for the beginning, one for the end, and its twelve letters. */
enum { BEGIN = 1, END = 2, FIRST_LETTER = 259, VOCABULARY = 272 };
static const char kLetters[] = "0123456789+=";

static int fail(const char* what) {
  fprintf(stderr, "add: %s\n", what);
  return 1;
}

int main(int argc, char** argv) {
  int32_t ids[ADDITION_SEQ_MAX] = {BEGIN};
  float logits[VOCABULARY];
  const void* inputs[ADDITION_INPUTS] = {ids};
  void* outputs[ADDITION_OUTPUTS] = {logits};
  int64_t position = 0, count = 1;
  quern_file weights;
  if (argc != 3) return fail("usage: add addition.gguf 27+58=");
  for (const char* at = argv[2]; *at != 0; ++at) {
    const char* letter = strchr(kLetters, *at);
    if (letter == NULL || count == ADDITION_SEQ_MAX) return fail("the model knows sums such as 27+58= only");
    ids[count++] = FIRST_LETTER + (int32_t)(letter - kLetters);
  }
  if (quern_map(argv[1], &weights) != 0) return fail("cannot read the model file");

  /* One piece of memory for everything, 64-byte aligned; one thread. */
  const size_t bytes = (size_t)addition_workspace_bytes(1);
  char* memory = malloc(bytes + 63);
  if (memory == NULL) return fail("no memory");
  addition* model;
  int32_t error = addition_init(&model, memory + (-(uintptr_t)memory & 63), bytes, weights.data, weights.bytes, NULL);

  /* The whole prompt in one step, then a token a step; each time the logits of the last position alone. */
  while (error == QUERN_OK && position + count <= ADDITION_SEQ_MAX) {
    error = addition_step(model, inputs, outputs, 1, position, count);
    if (error != QUERN_OK) break;
    position += count;
    count = 1;
    ids[0] = 0;
    for (int32_t id = 1; id < VOCABULARY; ++id) {
      if (logits[id] > logits[ids[0]]) ids[0] = id;
    }
    if (ids[0] == END) break;
    const int32_t letter = ids[0] - FIRST_LETTER;
    putchar(letter >= 0 && letter < (int32_t)strlen(kLetters) ? kLetters[letter] : '?');
  }
  puts("");
  free(memory);
  quern_unmap(&weights);
  return error == QUERN_OK ? 0 : fail(addition_error(error));
}
