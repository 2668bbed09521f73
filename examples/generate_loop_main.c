/* Runs what `generate_loop --compile FOLDER` wrote: cc -I FOLDER generate_loop_main.c FOLDER/generate.o -lm */
#include <stdio.h>
#include <stdlib.h>

#include "generate.h"

int main(void) {
  const int64_t first = 3, count = 20, too_many = 25;
  int64_t tokens[24];
  const void* inputs[GENERATE_INPUTS] = {&first, &count};
  void* outputs[GENERATE_OUTPUTS] = {tokens};
  const size_t bytes = (size_t)generate_workspace_bytes(1);
  void* memory = aligned_alloc(64, bytes);
  generate* model;
  int32_t error = generate_init(&model, memory, bytes, NULL, 0, NULL);
  if (error == QUERN_OK) error = generate_step(model, inputs, outputs);
  if (error != QUERN_OK) return fprintf(stderr, "%s\n", generate_error(error)), 1;
  for (int64_t i = 0; i < count; ++i) printf("%lld%s", (long long)tokens[i], i + 1 < count ? " " : "\n");
  /* One more than the cache holds, and then one that is asked to stop. */
  inputs[1] = &too_many;
  if (generate_step(model, inputs, outputs) != QUERN_ERROR_TRIPS) return 1;
  const volatile int32_t stop = 1;
  inputs[1] = &count;
  generate_cancel_when(model, &stop);
  error = generate_step(model, inputs, outputs);
  free(memory);
  return error == QUERN_ERROR_CANCELLED ? 0 : 1;
}
