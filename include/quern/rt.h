/* The runtime archive, libquern_rt.a: what a program around a compiled model may want of the system, in plain C. None
 * of it is needed: a model runs on the calling thread without a pool, and weights may come from anywhere.
 *
 *   quern_file weights;
 *   int error = quern_map("model.gguf", &weights);              // 0, or an errno
 *   quern_pool* pool = quern_pool_start(0);                     // may be null
 *   quern_runner runner = quern_pool_runner(pool);
 *   error = model_init(&model, memory, bytes, weights.data, weights.bytes, &runner);
 *   ...
 *   quern_pool_stop(pool);
 *   quern_unmap(&weights);
 */
#ifndef QUERN_RT_H_
#define QUERN_RT_H_

#include <stddef.h>
#include <stdint.h>

#include "quern/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A file in memory, read-only and aligned to a page. */
typedef struct quern_file {
  const void* data;
  size_t bytes;
} quern_file;

/* 0, or the errno of what failed; *file is empty then. An empty file, and what is no regular file, are EINVAL. */
int quern_map(const char* path, quern_file* file);
/* Leaves *file empty; an empty one stays so. */
void quern_unmap(quern_file* file);

/* Threads worth using: the least of the machine's processors, the affinity mask and the CPU quota of the cgroups. */
int64_t quern_thread_count(void);

typedef struct quern_pool quern_pool;

/* A pool of `threads` workers, the thread that runs a step among them; 0: quern_thread_count(). Waiting workers spin
 * for 200 us after a step, then sleep. Their affinity masks are that of the calling thread, less the processors where
 * the pool's other threads run, as long as it has one for each. Null: there is no memory, or no thread to be had, or a
 * negative number. */
quern_pool* quern_pool_start(int64_t threads);
/* What the init function of a model takes. Models may share a pool: their steps take turns. Of a null pool: a runner
 * that the init function refuses with QUERN_ERROR_WORKERS. */
quern_runner quern_pool_runner(quern_pool* pool);
/* No step may be under way. Null is let pass. */
void quern_pool_stop(quern_pool* pool);

#ifdef __cplusplus
}
#endif

#endif /* QUERN_RT_H_ */
