/* One start of a model that was compiled ahead of time under the name `model`: aot_start FILE TIME
 * TIME: when the process was started, in milliseconds of CLOCK_MONOTONIC. Prints the milliseconds from there until init
 * is done, and until the logits of one token are there. scripts/aot_start.py builds and runs it. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "model.h"
#include "quern/rt.h"

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

int main(int argc, char** argv) {
  quern_file weights;
  if (argc != 3 || quern_map(argv[1], &weights) != 0) return 1;
  const size_t bytes = (size_t)model_workspace_bytes(1);
  char* memory = calloc(1, bytes + 63);
  memory += -(uintptr_t)memory & 63;
  model* made = NULL;
  int32_t error = model_init_zeroed(&made, memory, bytes, weights.data, weights.bytes, NULL);
  const double init = now_ms();
  if (error != 0) return fprintf(stderr, "%s\n", model_error(error)), 1;
  int32_t id = 1;
  float* logits = malloc((size_t)model_output_bytes(0, 1, 0, 1));
  const void* inputs[MODEL_INPUTS] = {&id};
  void* outputs[MODEL_OUTPUTS] = {logits};
  error = model_step(made, inputs, outputs, 1, 0, 1);
  if (error != 0) return fprintf(stderr, "%s\n", model_error(error)), 1;
  const double token = now_ms(), start = atof(argv[2]);
  printf("%f %f\n", init - start, token - start);
  return 0;
}
