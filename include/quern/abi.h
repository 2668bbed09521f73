/* The kernel ABI: how a generated kernel is called, by the JIT runtime and by ahead-of-time objects alike.
 * Plain C, stand-alone, versioned; only <stdint.h> may be included here. */
#ifndef QUERN_ABI_H_
#define QUERN_ABI_H_

#include <stdint.h>

#define QUERN_ABI_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/* What every chunk of one dispatch shares. Both tables are in the order of the kernel's declaration. */
typedef struct quern_args {
  void* const* buffers;    /* one pointer a buffer, aligned as the kernel declares */
  const int64_t* symbols;  /* one value a symbol, derived symbols included */
} quern_args;

/* Runs chunks [begin, end) of the kernel's grid (its dimensions linearised, the last one fastest).
 * scratch: this worker's own memory, 64-byte aligned, of the size the kernel's manifest states.
 * Chunks are independent: any split over any threads gives the same bits. Never allocates, never calls the system. */
typedef void quern_kernel(const quern_args* args, void* scratch, int64_t begin, int64_t end);

#ifdef __cplusplus
}
#endif

#endif /* QUERN_ABI_H_ */
