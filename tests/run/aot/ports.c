/* Runs one step of a compiled model on inputs from files, and writes its outputs to files: whatever the model is.
 *
 *   ports WEIGHTS|- FOLDER SIZE...   reads FOLDER/0.in and so on, writes FOLDER/0.out; sizes as the step takes them
 *
 * -DSIZES=",sizes[0],sizes[1]" names as many sizes as the step has, and -DFOUND=",&found[0]" as many as it finds.
 * Prints the names, types and shapes of the ports, and the sizes that were found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "quern/rt.h"

enum { MOST = 64 };

static int fail(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  return 1;
}

static void show(const char* word, const quern_port* port) {
  printf("%s %s %s%s\n", word, port->name, port->dtype, port->shape);
}

int main(int argc, char** argv) {
  int64_t sizes[MOST] = {0}, found[MOST];
  const void* inputs[MOST] = {0};
  void* outputs[MOST] = {0};
  char path[4096];
  quern_file weights = {0, 0};
  if (argc < 3) return fail("usage", "WEIGHTS|- FOLDER SIZE...");
  for (int s = 3; s < argc; ++s) sizes[s - 3] = atoll(argv[s]);
  for (int s = 0; s < MOST; ++s) found[s] = -1;
  (void)sizes;
  if (strcmp(argv[1], "-") != 0 && quern_map(argv[1], &weights) != 0) return fail(argv[1], "cannot be read");
  for (int i = 0; i < MODEL_INPUTS; ++i) {
    quern_file file;
    snprintf(path, sizeof(path), "%s/%d.in", argv[2], i);
    if (quern_map(path, &file) != 0) return fail(path, "cannot be read");
    if ((int64_t)file.bytes != model_input_bytes(i SIZES)) return fail(path, "not the bytes of the input");
    inputs[i] = file.data;
    show("input", &model_inputs[i]);
  }
  for (int o = 0; o < MODEL_OUTPUTS; ++o) {
    outputs[o] = aligned_alloc(64, (size_t)(model_output_bytes(o SIZES) + 64) / 64 * 64);
    show("output", &model_outputs[o]);
  }
  const size_t bytes = (size_t)model_workspace_bytes(1);
  void* memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
  model* made = NULL;
  int32_t error = model_init(&made, memory, bytes, weights.data, weights.bytes, NULL);
  if (error == QUERN_OK) error = model_step(made, inputs, outputs SIZES FOUND);
  if (error != QUERN_OK) return fail("model", model_error(error));
  for (int o = 0; o < MODEL_OUTPUTS; ++o) {
    snprintf(path, sizeof(path), "%s/%d.out", argv[2], o);
    FILE* file = fopen(path, "wb");
    const size_t count = (size_t)model_output_bytes(o SIZES);
    if (file == NULL || fwrite(outputs[o], 1, count, file) != count || fclose(file) != 0)
      return fail(path, "not written");
    free(outputs[o]);
  }
  for (int s = 0; s < MOST && found[s] >= 0; ++s) printf("found %lld\n", (long long)found[s]);
  free(memory);
  return 0;
}
