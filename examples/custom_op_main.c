/* Runs what `custom_op --compile FOLDER` wrote: cc -I FOLDER custom_op_main.c median.c FOLDER/smooth.o -lm */
#include <stdio.h>
#include <stdlib.h>

#include "smooth.h"

int main(void) {
  enum { ROWS = 3, LENGTH = 40 };
  static float x[ROWS * LENGTH], y[ROWS * LENGTH];
  for (size_t i = 0; i < ROWS * LENGTH; ++i) x[i] = (float)(i * 37 % 101) / 101;
  const void* inputs[SMOOTH_INPUTS] = {x};
  void* outputs[SMOOTH_OUTPUTS] = {y};
  const size_t bytes = (size_t)smooth_workspace_bytes(1);
  void* memory = aligned_alloc(64, bytes);
  smooth* model;
  int32_t error = smooth_init(&model, memory, bytes, NULL, 0, NULL);
  if (error == QUERN_OK) error = smooth_step(model, inputs, outputs, ROWS);
  if (error != QUERN_OK) return fprintf(stderr, "%s\n", smooth_error(error)), 1;
  double sum = 0;
  for (size_t i = 0; i < ROWS * LENGTH; ++i) sum += (double)y[i];
  printf("%.4f %.4f %.4f\n", (double)y[0], (double)y[57], sum);
  free(memory);
  return 0;
}
