/* The thread pool under strain, for the thread sanitizer: dispatches of many shapes, each of which reads what all
 * chunks of the one before it wrote; runs back to back and after sleep; two callers of one pool. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "quern/rt.h"

enum { DISPATCHES = 40, CHUNKS = 97, RUNS = 200 };

typedef struct job {
  int64_t cells[DISPATCHES + 1][CHUNKS];
  int64_t chunks[DISPATCHES];
  quern_args args[DISPATCHES];
  void* buffers[DISPATCHES][2];
  int64_t symbols[DISPATCHES][2];
  quern_dispatch list[DISPATCHES];
} job;

/* Each chunk: one more than the sum of the row before. */
static void kernel(const quern_args* args, void* scratch, int64_t begin, int64_t end) {
  const int64_t* from = (const int64_t*)args->buffers[0];
  int64_t* to = (int64_t*)args->buffers[1];
  *(int64_t*)scratch = begin; /* each worker's own: the sanitizer objects if two share it */
  for (int64_t c = begin; c < end; ++c) {
    int64_t sum = 1;
    for (int64_t i = 0; i < args->symbols[0]; ++i) sum += from[i] % 1000;
    to[c] = sum;
  }
}

static job* make(uint32_t seed) {
  job* j = (job*)calloc(1, sizeof(job));
  for (int64_t i = 0; i < DISPATCHES; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const int64_t choice = (seed >> 16) % 5;
    j->chunks[i] = choice == 0 ? 0 : choice == 1 ? 1 : (seed >> 8) % CHUNKS + 1;
    j->symbols[i][0] = CHUNKS;
    j->buffers[i][0] = j->cells[i];
    j->buffers[i][1] = j->cells[i + 1];
    j->args[i].buffers = j->buffers[i];
    j->args[i].symbols = j->symbols[i];
    j->list[i].kernel = kernel;
    j->list[i].args = &j->args[i];
    j->list[i].chunks = j->chunks[i];
    j->list[i].sequential = choice == 2;
    j->list[i].prefetch = j->cells[0];
    j->list[i].prefetch_bytes = 256;
  }
  return j;
}

static int64_t checksum(const job* j) {
  int64_t sum = 0;
  for (int i = 0; i <= DISPATCHES; ++i) {
    for (int c = 0; c < CHUNKS; ++c) sum = sum * 31 % 1000000007 + j->cells[i][c];
  }
  return sum;
}

static quern_pool* pool;

static void* caller(void* context) {
  const uint32_t seed = (uint32_t)(uintptr_t)context;
  const quern_runner runner = quern_pool_runner(pool);
  void** scratch = (void**)calloc((size_t)runner.workers, sizeof(void*));
  for (int64_t w = 0; w < runner.workers; ++w) scratch[w] = malloc(64);
  int64_t failures = 0;
  for (int r = 0; r < RUNS; ++r) {
    job* alone = make(seed + (uint32_t)r);
    for (int64_t i = 0; i < DISPATCHES; ++i) kernel(&alone->args[i], scratch[0], 0, alone->chunks[i]);
    job* together = make(seed + (uint32_t)r);
    runner.run(runner.self, together->list, r % DISPATCHES + 1, scratch);
    runner.run(runner.self, together->list, DISPATCHES, scratch);
    failures += checksum(alone) != checksum(together);
    free(alone);
    free(together);
    if (r % 40 == 0) nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL); /* the workers fall asleep */
  }
  for (int64_t w = 0; w < runner.workers; ++w) free(scratch[w]);
  free(scratch);
  return (void*)(uintptr_t)failures;
}

int main(void) {
  for (int64_t threads = 1; threads <= 5; ++threads) {
    pool = quern_pool_start(threads);
    pthread_t other;
    void* failures = NULL;
    if (pool == NULL || pthread_create(&other, NULL, caller, (void*)(uintptr_t)7) != 0) return 2;
    void* own = caller((void*)(uintptr_t)100000);
    pthread_join(other, &failures);
    quern_pool_stop(pool);
    if (own != NULL || failures != NULL) {
      fprintf(stderr, "%d threads: wrong sums\n", (int)threads);
      return 1;
    }
  }
  return 0;
}
