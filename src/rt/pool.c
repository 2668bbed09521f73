/* The thread pool: runs a list of kernel dispatches with every worker, chunk by chunk. The runner of models that are
 * compiled ahead of time, and what is below ThreadPool of those that are compiled in process.
 *
 * All workers walk the list together. Each has a share of the open dispatch's chunks, an unbroken run of them, so that
 * weights stream by in order and what a chunk prefetches beyond its end is the worker's own next chunk; who has
 * finished its own takes from the others'. Whoever completes the last chunk of a dispatch runs the short ones that
 * follow, on the spot, and opens the next. There is no other barrier: a worker that is late holds up only the chunk it
 * has in hand. Work is cut by the kernels, never by the number of threads, so results do not depend on it.
 *
 * Workers spin for the whole of a run and about 200 us after it (a wake-up costs tens of microseconds), yield when the
 * waiting grows long, then sleep. A run allocates nothing. */
#include "rt/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "rt/doorbell.h"
#include "rt/float_mode.h"
#include "rt/placement.h"

enum { CHUNK_BITS = 40, MOST_THREADS = 65536 };
/* Pauses before a waiting worker starts to yield: about 20 us, far longer than any healthy wait for a chunk. */
enum { PAUSES_BEFORE_YIELD = 500 };
static const int64_t SPIN_AFTER_RUN_NS = 200000;

/* -fsanitize=function reads what clang writes before each function, to compare types. Nothing is written before a
 * kernel that was made at run time, and where that begins a page, nothing can be read there either. */
#ifdef __clang__
#define CALLS_KERNELS __attribute__((no_sanitize("function")))
#else
#define CALLS_KERNELS
#endif
/* Of what depends on whether the run is watched: a run that is not has no code for it. */
#define EACH_WAY static inline __attribute__((always_inline))

/* On cache lines of its own. */
typedef struct worker {
  /* dispatch << CHUNK_BITS | chunks of this worker's share of it that are taken. Of an earlier dispatch: none is. */
  alignas(128) _Atomic uint64_t taken;
  quern_pool* pool;
  int64_t index;
  pthread_t thread; /* of all but the first, which is whoever calls */
} worker;

struct quern_pool {
  /* The run in progress: written while `open` is false and nobody is inside. */
  const quern_dispatch* dispatches;
  int64_t count;
  void* const* scratch;
  const pool_watch* watch;
  const bool* cancel;
  bool cancelled;                      /* written by whoever advances */
  alignas(128) _Atomic int64_t stage;  /* the dispatch that is open; `count` at the end */
  alignas(128) _Atomic int64_t done;   /* chunks of it */
  alignas(128) _Atomic uint32_t epoch; /* counts runs; what sleeping workers watch */
  _Atomic bool open, stop;
  _Atomic int inside, sleeping;
  pthread_mutex_t turn; /* one run at a time */
  doorbell bell;
  int64_t threads;
  worker* workers;
  placement* places;
};

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static bool cancels(quern_pool* pool) {
  if (pool->cancel != NULL && __atomic_load_n(pool->cancel, __ATOMIC_RELAXED)) pool->cancelled = true;
  return pool->cancelled;
}

/* Runs dispatches from `index` on that one worker does alone, then opens the next that is shared and returns it. */
CALLS_KERNELS EACH_WAY int64_t advance(quern_pool* pool, const pool_watch* watch, int64_t index, int64_t self,
                                       uint64_t* since) {
  for (; index < pool->count && !cancels(pool); ++index) {
    const quern_dispatch* d = &pool->dispatches[index];
    if (d->chunks > 0 && !d->sequential) break;
    if (d->chunks <= 0) continue;
    if (watch != NULL) watch->begin(watch->self, self, index, *since);
    d->kernel(d->args, pool->scratch[self], 0, d->chunks);
    if (watch == NULL) continue;
    watch->end(watch->self, self, index, d->chunks);
    watch->leave(watch->self, self, index);
    *since = watch->done(watch->self, index);
  }
  if (pool->cancelled) index = pool->count;
  atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
  /* Release: whoever meets this stage sees what all dispatches before it stored. */
  atomic_store_explicit(&pool->stage, index, memory_order_release);
  return index;
}

/* Of [begin, end), the owner's share of the dispatch `stage`, the first chunk that is left, or -1: there is none, or
 * another dispatch is open by now. A counter of an earlier dispatch is where nobody has come to the share yet: the
 * exchange, which succeeds while one is left alone and so while `stage` is open, sets it on this one. */
static int64_t take(_Atomic uint64_t* taken, int64_t stage, int64_t begin, int64_t end) {
  for (uint64_t now = atomic_load_explicit(taken, memory_order_relaxed);;) {
    const int64_t at = (int64_t)(now >> CHUNK_BITS);
    const uint64_t mine = at < stage ? (uint64_t)stage << CHUNK_BITS : now;
    const int64_t chunk = begin + (int64_t)(mine & (((uint64_t)1 << CHUNK_BITS) - 1));
    if (at > stage || chunk >= end) return -1;
    if (atomic_compare_exchange_weak_explicit(taken, &now, mine + 1, memory_order_relaxed, memory_order_relaxed))
      return chunk;
  }
}

/* Runs chunks of the open dispatch until none is left to take, and counts them. */
CALLS_KERNELS EACH_WAY int64_t take_chunks(quern_pool* pool, const pool_watch* watch, int64_t stage, int64_t self,
                                           uint64_t since) {
  const quern_dispatch* d = &pool->dispatches[stage];
  const int64_t threads = pool->threads;
  int64_t count = 0;
  for (int64_t i = 0, owner = self; i < threads; ++i, owner = owner + 1 == threads ? 0 : owner + 1) {
    const int64_t begin = d->chunks * owner / threads, end = d->chunks * (owner + 1) / threads, before = count;
    for (int64_t chunk; (chunk = take(&pool->workers[owner].taken, stage, begin, end)) >= 0; ++count) {
      if (watch != NULL && count == 0) watch->begin(watch->self, self, stage, since);
      d->kernel(d->args, pool->scratch[self], chunk, chunk + 1);
    }
    if (watch != NULL && count > before) watch->end(watch->self, self, stage, count);
  }
  if (watch != NULL && count > 0) watch->leave(watch->self, self, stage);
  return count;
}

/* Waits for the others' chunks, and pulls in what comes next meanwhile. */
static void wait_for_next(quern_pool* pool, int64_t stage) {
  if (stage + 1 < pool->count) {
    const quern_dispatch* d = &pool->dispatches[stage];
    if (d->prefetch == NULL) ++d;
    const char* ahead = (const char*)d->prefetch;
    const int64_t bytes = ahead == NULL ? 0 : d->prefetch_bytes;
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(ahead + i, 0, 1);
  }
  for (int pauses = 0; atomic_load_explicit(&pool->stage, memory_order_acquire) == stage;) {
    if (++pauses < PAUSES_BEFORE_YIELD)
      relax();
    else
      sched_yield();
  }
}

EACH_WAY void walk(quern_pool* pool, const pool_watch* watch, int64_t self) {
  int64_t opened = -1; /* by this worker, at `since` */
  uint64_t since = 0;
  if (watch != NULL) watch->enter(watch->self, self);
  for (int64_t stage; (stage = atomic_load_explicit(&pool->stage, memory_order_acquire)) < pool->count;) {
    placement_check(pool->places, self);
    const int64_t chunks = pool->dispatches[stage].chunks;
    /* The dispatch stays open until they are counted. Release makes this worker's stores visible to whoever opens the
     * next; acquire lets that one see them. */
    const int64_t mine = take_chunks(pool, watch, stage, self, stage == opened ? since : 0);
    if (mine > 0 && atomic_fetch_add_explicit(&pool->done, mine, memory_order_acq_rel) + mine == chunks) {
      if (watch != NULL) since = watch->done(watch->self, stage);
      opened = advance(pool, watch, stage + 1, self, &since);
    } else {
      wait_for_next(pool, stage);
    }
  }
}

/* Takes part in the open run until it ends. */
static void work(quern_pool* pool, int64_t self) {
  if (pool->watch != NULL)
    walk(pool, pool->watch, self);
  else
    walk(pool, NULL, self);
}

/* Returns when the epoch is not `seen` any more. */
static void wait_for_run(quern_pool* pool, uint32_t seen) {
  const int64_t spin_until = now_ns() + SPIN_AFTER_RUN_NS;
  for (unsigned pauses = 1; atomic_load(&pool->epoch) == seen; ++pauses) {
    relax();
    if (pauses % 64 != 0 || now_ns() < spin_until) continue;
    atomic_fetch_add(&pool->sleeping, 1);
    if (atomic_load(&pool->epoch) == seen) doorbell_wait(&pool->bell, &pool->epoch, seen);
    atomic_fetch_sub(&pool->sleeping, 1);
  }
}

static void wake_all(quern_pool* pool) {
  atomic_fetch_add(&pool->epoch, 1);
  if (atomic_load(&pool->sleeping) > 0) doorbell_ring(&pool->bell, &pool->epoch);
}

static void* worker_main(void* context) {
  const worker* self = (const worker*)context;
  quern_pool* pool = self->pool;
  flush_denormals();
  placement_join(pool->places, self->index);
  for (uint32_t seen = 0;;) {
    wait_for_run(pool, seen);
    seen = atomic_load(&pool->epoch);
    if (atomic_load(&pool->stop)) return NULL;
    /* Enter only while the run is open; sequentially consistent with the run's close-then-look. */
    atomic_fetch_add(&pool->inside, 1);
    if (atomic_load(&pool->open)) work(pool, self->index);
    atomic_fetch_sub(&pool->inside, 1);
  }
}

bool pool_run(quern_pool* pool, const quern_dispatch* dispatches, int64_t count, void* const* scratch,
              const pool_watch* watch, const bool* cancel) {
  pthread_mutex_lock(&pool->turn);
  const uint64_t saved = flush_denormals();
  pool->dispatches = dispatches;
  pool->count = count;
  pool->scratch = scratch;
  pool->watch = watch;
  pool->cancel = cancel;
  pool->cancelled = false;
  for (int64_t w = 0; w < pool->threads; ++w) atomic_store_explicit(&pool->workers[w].taken, 0, memory_order_relaxed);
  uint64_t since = 0;
  /* What comes before the first that is shared, with a watch's first words. */
  if (watch != NULL) {
    watch->enter(watch->self, 0);
    advance(pool, watch, 0, 0, &since);
  } else {
    advance(pool, NULL, 0, 0, &since);
  }
  const bool shared = pool->threads > 1 && atomic_load_explicit(&pool->stage, memory_order_relaxed) < count;
  if (shared) {
    placement_check(pool->places, 0); /* before any worker wakes */
    atomic_store(&pool->open, true);
    wake_all(pool);
  }
  work(pool, 0);
  if (shared) {
    atomic_store(&pool->open, false);
    while (atomic_load(&pool->inside) > 0) relax();
  }
  const bool all = !pool->cancelled;
  restore_denormals(saved);
  pthread_mutex_unlock(&pool->turn);
  return all;
}

static void run(void* context, const quern_dispatch* dispatches, int64_t count, void* const* scratch) {
  pool_run((quern_pool*)context, dispatches, count, scratch, NULL, NULL);
}

quern_pool* pool_start_some(int64_t threads) {
  if (threads < 1 || threads > MOST_THREADS) return NULL;
  quern_pool* pool = (quern_pool*)aligned_alloc(alignof(quern_pool), sizeof(quern_pool));
  worker* workers = (worker*)aligned_alloc(alignof(worker), (size_t)threads * sizeof(worker));
  if (pool == NULL || workers == NULL) {
    free(pool);
    free(workers);
    return NULL;
  }
  *pool = (quern_pool){.workers = workers, .places = placement_start(threads)};
  pthread_mutex_init(&pool->turn, NULL);
  doorbell_open(&pool->bell);
  /* Workers read how many there are inside a run alone, after they have all been made. */
  for (; pool->threads < threads; ++pool->threads) {
    worker* self = &workers[pool->threads];
    *self = (worker){.pool = pool, .index = pool->threads};
    if (pool->threads > 0 && pthread_create(&self->thread, NULL, worker_main, self) != 0) break;
  }
  return pool;
}

quern_pool* quern_pool_start(int64_t threads) {
  if (threads == 0) threads = quern_thread_count();
  quern_pool* pool = pool_start_some(threads);
  if (pool == NULL || pool->threads == threads) return pool;
  quern_pool_stop(pool);
  return NULL;
}

quern_runner quern_pool_runner(quern_pool* pool) {
  if (pool == NULL) return (quern_runner){NULL, NULL, 1};
  return (quern_runner){run, pool, pool->threads};
}

void quern_pool_stop(quern_pool* pool) {
  if (pool == NULL) return;
  atomic_store(&pool->stop, true);
  wake_all(pool);
  for (int64_t w = 1; w < pool->threads; ++w) pthread_join(pool->workers[w].thread, NULL);
  doorbell_close(&pool->bell);
  pthread_mutex_destroy(&pool->turn);
  placement_stop(pool->places);
  free(pool->workers);
  free(pool);
}
