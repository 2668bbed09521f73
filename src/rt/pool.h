/* What the run-time of models that are compiled in process uses of the pool beside quern/rt.h: fewer threads where
 * there are no more, runs that can be cancelled, runs that are watched. */
#ifndef QUERN_SRC_RT_POOL_H_
#define QUERN_SRC_RT_POOL_H_

#include <stdbool.h>
#include <stdint.h>

#include "quern/rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Told of a run by its workers, each of which speaks for itself alone and at any time. Dispatches are counted from 0;
 * `since` is what `done` returned of the dispatch before, where the worker goes straight on from there, else 0. */
typedef struct pool_watch {
  void* self;
  void (*enter)(void* self, int64_t worker); /* the worker takes part in the run */
  /* Its first chunk of the dispatch starts; of one owner's share `chunks` in all have ended so far; it has no more. */
  void (*begin)(void* self, int64_t worker, int64_t dispatch, uint64_t since);
  void (*end)(void* self, int64_t worker, int64_t dispatch, int64_t chunks);
  void (*leave)(void* self, int64_t worker, int64_t dispatch);
  uint64_t (*done)(void* self, int64_t dispatch); /* by the worker that has found every chunk done */
} pool_watch;

/* At least 1 thread, the caller's. Fewer than asked for where the system has no more: the runner of the pool says how
 * many. Null: there is no memory. */
quern_pool* pool_start_some(int64_t threads);

/* Runs the dispatches in order, as the runner does, and returns whether all of them ran. `watch`: or null, for which
 * the run pays one branch a worker. `cancel`, which another thread may set at any time: once it is true no further
 * dispatch starts; null: nobody asks. */
bool pool_run(quern_pool* pool, const quern_dispatch* dispatches, int64_t count, void* const* scratch,
              const pool_watch* watch, const bool* cancel);

#ifdef __cplusplus
}
#endif

#endif /* QUERN_SRC_RT_POOL_H_ */
