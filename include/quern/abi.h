/* The kernel ABI: how a generated kernel is called, by the JIT runtime and by ahead-of-time objects alike, and what
 * both ask of threads.
 * Plain C, stand-alone, versioned; only <stdint.h> may be included here. */
#ifndef QUERN_ABI_H_
#define QUERN_ABI_H_

#include <stdint.h>

#define QUERN_ABI_VERSION 2

#ifdef __cplusplus
extern "C" {
#endif

/* What every chunk of one dispatch shares. Both tables are in the order of the kernel's declaration. */
typedef struct quern_args {
  void* const* buffers;   /* one pointer a buffer, aligned as the kernel declares */
  const int64_t* symbols; /* one value a symbol, derived symbols included */
} quern_args;

/* Runs chunks [begin, end) of the kernel's grid (its dimensions linearised, the last one fastest).
 * scratch: this worker's own memory, 64-byte aligned, of the size the kernel's manifest states.
 * Chunks are independent: any split over any threads gives the same bits. Never allocates, never calls the system. */
typedef void quern_kernel(const quern_args* args, void* scratch, int64_t begin, int64_t end);

/* One kernel over chunks [0, chunks) of its grid. */
typedef struct quern_dispatch {
  quern_kernel* kernel;
  const quern_args* args;
  int64_t chunks;
  int64_t sequential;   /* not 0: too short to share, one worker runs every chunk */
  const void* prefetch; /* what waiting workers may pull towards their caches: weights that come next; or null */
  int64_t prefetch_bytes;
} quern_dispatch;

/* Threads. `run` runs the dispatches one after the other, the chunks of each in any order on any of `workers` workers,
 * each with its own scratch[w], and returns when all are done. Every worker has denormals flushed to zero (on x86: FTZ
 * and DAZ in MXCSR) while it runs kernels, or results differ from a run without threads in their last bits. */
typedef struct quern_runner {
  void (*run)(void* self, const quern_dispatch* dispatches, int64_t count, void* const* scratch);
  void* self;
  int64_t workers;
} quern_runner;

/* An input or output of a compiled model. */
typedef struct quern_port {
  const char* name;
  const char* dtype; /* "f32", "i32", ... */
  const char* shape; /* "[SEQ, 32000]": numbers and symbols, outermost first */
} quern_port;

/* What the functions of a compiled model return. */
enum {
  QUERN_OK = 0,
  QUERN_ERROR_NULL = 1,            /* a pointer that is needed is null */
  QUERN_ERROR_WORKSPACE_ALIGN = 2, /* the workspace is not aligned to 64 bytes */
  QUERN_ERROR_WORKSPACE_SIZE = 3,  /* the workspace is smaller than the model asks for this number of workers */
  QUERN_ERROR_WEIGHTS_ALIGN = 4,   /* the weights are not aligned to 32 bytes */
  QUERN_ERROR_WEIGHTS_SIZE = 5,    /* the weights have another length than the file that was compiled */
  QUERN_ERROR_WEIGHTS_OTHER = 6,   /* the weights are another file: its header or tensor table differs */
  QUERN_ERROR_CPU = 7,             /* this processor, or its system, runs none of the compiled levels */
  QUERN_ERROR_SYMBOL_RANGE = 8,    /* a size is outside the range it was compiled for */
  QUERN_ERROR_SIZES = 9,           /* the sizes do not go together: a requirement between them is broken */
  QUERN_ERROR_WORKERS = 10,        /* a runner without a function, or not with 1 to 65536 workers */
  QUERN_ERROR_TRIPS = 11,          /* a loop needs more trips than it may make; no state has changed */
  QUERN_ERROR_CANCELLED = 12       /* the flag that the step looks at asked it to stop */
};

#ifdef __cplusplus
}
#endif

#endif /* QUERN_ABI_H_ */
