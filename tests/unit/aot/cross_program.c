/* Runs compiled graphs on data from a file, for a processor that is not the one that compiled them:
 *   program DATA RESULTS alone|backwards
 * Both files are streams of 64-bit numbers and bytes; cross_graph_test.cc writes the one and reads the other. `rows` is
 * the table of the graphs, written by the test. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quern/abi.h"

typedef struct row {
  int64_t (*workspace_bytes)(int64_t workers);
  int32_t (*init)(void** self, void* memory, size_t bytes, const void* weights, size_t weight_bytes,
                  const quern_runner* runner);
  void (*step)(void); /* of as many symbols as the graph has, 4 at most */
} row;
extern const row rows[];
extern const int64_t row_count;

enum { MOST = 64 };

static FILE *in, *out;

static void* allocate(int64_t bytes) {
  const size_t whole = ((size_t)bytes + 63) / 64 * 64 + 64;
  void* memory = aligned_alloc(64, whole);
  if (memory == NULL) exit(3);
  memset(memory, 0xa5, whole);
  return memory;
}

static int64_t number(void) {
  int64_t value = 0;
  if (fread(&value, sizeof(value), 1, in) != 1) exit(2);
  return value;
}

static void read_bytes(void* to, int64_t bytes) {
  if (bytes > 0 && fread(to, 1, (size_t)bytes, in) != (size_t)bytes) exit(2);
}

static void* block(int64_t* bytes) {
  *bytes = number();
  void* memory = allocate(*bytes);
  read_bytes(memory, *bytes);
  return memory;
}

/* All chunks, one at a time and last first: any order is right. */
static void run_backwards(void* self, const quern_dispatch* dispatches, int64_t count, void* const* scratch) {
  (void)self;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t chunk = dispatches[i].chunks; chunk-- > 0;)
      dispatches[i].kernel(dispatches[i].args, scratch[chunk % 2], chunk, chunk + 1);
  }
}

#define STEP(...) (int32_t (*)(void*, const void* const*, void* const*, ##__VA_ARGS__))
static int32_t step(const row* r, void* self, const void* const* inputs, void* const* outputs, int64_t symbols,
                    const int64_t* s) {
  switch (symbols) {
    case 0: return (STEP() r->step)(self, inputs, outputs);
    case 1: return (STEP(int64_t) r->step)(self, inputs, outputs, s[0]);
    case 2: return (STEP(int64_t, int64_t) r->step)(self, inputs, outputs, s[0], s[1]);
    case 3: return (STEP(int64_t, int64_t, int64_t) r->step)(self, inputs, outputs, s[0], s[1], s[2]);
    case 4: return (STEP(int64_t, int64_t, int64_t, int64_t) r->step)(self, inputs, outputs, s[0], s[1], s[2], s[3]);
    default: return -1;
  }
}

int main(int argc, char** argv) {
  if (argc != 4 || (in = fopen(argv[1], "rb")) == NULL || (out = fopen(argv[2], "wb")) == NULL) return 1;
  const quern_runner backwards = {run_backwards, NULL, 2};
  const quern_runner* runner = strcmp(argv[3], "backwards") == 0 ? &backwards : NULL;
  for (int64_t i = 0; i < row_count; ++i) {
    int64_t weight_bytes, bytes, offsets[MOST], sizes[MOST], symbols[4];
    void *self = NULL, *results[MOST];
    const void* inputs[MOST];
    const void* weights = block(&weight_bytes);
    const int64_t memory_bytes = rows[i].workspace_bytes(runner == NULL ? 1 : 2);
    uint8_t* memory = (uint8_t*)allocate(memory_bytes);
    const int32_t made = rows[i].init(&self, memory, (size_t)memory_bytes, weights, (size_t)weight_bytes, runner);
    const int64_t states = number();
    for (int64_t s = 0; s < states; ++s) {
      offsets[s] = number();
      sizes[s] = number();
      read_bytes(memory + offsets[s], sizes[s]);
    }
    const int64_t input_count = number();
    for (int64_t p = 0; p < input_count; ++p) inputs[p] = block(&bytes);
    const int64_t output_count = number();
    int64_t result_bytes[MOST];
    for (int64_t p = 0; p < output_count; ++p) results[p] = allocate(result_bytes[p] = number());
    const int64_t symbol_count = number();
    for (int64_t s = 0; s < symbol_count; ++s) symbols[s] = number();
    const int64_t code = made != 0 ? made : step(&rows[i], self, inputs, results, symbol_count, symbols);
    fwrite(&code, sizeof(code), 1, out);
    for (int64_t p = 0; p < output_count; ++p) fwrite(results[p], 1, (size_t)result_bytes[p], out);
    for (int64_t s = 0; s < states; ++s) fwrite(memory + offsets[s], 1, (size_t)sizes[s], out);
  }
  return fclose(out) == 0 ? 0 : 1;
}
