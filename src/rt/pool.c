/* The thread pool of compiled models: runs a list of kernel dispatches with every worker, chunk by chunk.
 *
 * All workers walk the list together. Each has a share of the open dispatch's chunks, an unbroken run of them, so that
 * weights stream by in order; who has finished its own takes from the others'. Whoever completes the last chunk of a
 * dispatch runs the short ones that follow, on the spot, and opens the next. There is no other barrier: a worker that
 * is late holds up only the chunk it has in hand. A run allocates nothing. */
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "quern/rt.h"
#include "rt/float_mode.h"
#include "rt/placement.h"

enum { CHUNK_BITS = 40, MOST_THREADS = 65536 };
/* Pauses before a waiting worker starts to yield: about 20 us, far longer than any healthy wait for a chunk. */
enum { PAUSES_BEFORE_YIELD = 500 };
static const int64_t SPIN_AFTER_RUN_NS = 200000;

/* On cache lines of its own. */
typedef struct worker {
  alignas(128) _Atomic uint64_t taken; /* dispatch << CHUNK_BITS | chunks of this worker's share that are taken */
  quern_pool* pool;
  int64_t index;
  pthread_t thread; /* of all but the first, which is whoever calls */
} worker;

struct quern_pool {
  /* The run in progress: written while `open` is false and nobody is inside. */
  const quern_dispatch* dispatches;
  int64_t count;
  void* const* scratch;
  alignas(128) _Atomic int64_t stage;  /* the dispatch that is open; `count` at the end */
  alignas(128) _Atomic int64_t done;   /* chunks of it */
  alignas(128) _Atomic uint32_t epoch; /* counts runs */
  _Atomic bool open, stop;
  _Atomic int inside, sleeping;
  pthread_mutex_t turn; /* one run at a time */
  pthread_mutex_t bed;
  pthread_cond_t wake; /* `epoch` has changed */
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

/* Runs dispatches from `index` on that one worker does alone, then opens the next that is shared. */
static void advance(quern_pool* pool, int64_t index, int64_t self) {
  for (; index < pool->count; ++index) {
    const quern_dispatch* d = &pool->dispatches[index];
    if (d->chunks > 0 && !d->sequential) break;
    if (d->chunks > 0) d->kernel(d->args, pool->scratch[self], 0, d->chunks);
  }
  atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
  for (int64_t w = 0; w < pool->threads; ++w) {
    atomic_store_explicit(&pool->workers[w].taken, (uint64_t)index << CHUNK_BITS, memory_order_relaxed);
  }
  /* Release: whoever meets this stage sees what all dispatches before it stored. */
  atomic_store_explicit(&pool->stage, index, memory_order_release);
}

/* A chunk of the owner's share of the dispatch `stage`, or -1: none is left, or another dispatch is open by now. */
static int64_t take(quern_pool* pool, int64_t stage, int64_t owner) {
  const int64_t chunks = pool->dispatches[stage].chunks;
  const int64_t begin = chunks * owner / pool->threads, end = chunks * (owner + 1) / pool->threads;
  _Atomic uint64_t* taken = &pool->workers[owner].taken;
  for (uint64_t now = atomic_load_explicit(taken, memory_order_relaxed);;) {
    const int64_t chunk = begin + (int64_t)(now & (((uint64_t)1 << CHUNK_BITS) - 1));
    if ((int64_t)(now >> CHUNK_BITS) != stage || chunk >= end) return -1;
    if (atomic_compare_exchange_weak_explicit(taken, &now, now + 1, memory_order_relaxed, memory_order_relaxed))
      return chunk;
  }
}

static void wait_for_next(quern_pool* pool, int64_t stage) {
  const char* ahead = (const char*)pool->dispatches[stage].prefetch;
  const int64_t bytes = ahead == NULL ? 0 : pool->dispatches[stage].prefetch_bytes;
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(ahead + i, 0, 1);
  for (int pauses = 0; atomic_load_explicit(&pool->stage, memory_order_acquire) == stage;) {
    if (++pauses < PAUSES_BEFORE_YIELD)
      relax();
    else
      sched_yield();
  }
}

/* Takes part in the open run until it ends. */
static void work(quern_pool* pool, int64_t self) {
  for (int64_t stage; (stage = atomic_load_explicit(&pool->stage, memory_order_acquire)) < pool->count;) {
    placement_check(pool->places, self);
    const quern_dispatch* d = &pool->dispatches[stage];
    int64_t mine = 0; /* the dispatch stays open until they are counted */
    for (int64_t i = 0; i < pool->threads; ++i) {
      for (int64_t chunk; (chunk = take(pool, stage, (self + i) % pool->threads)) >= 0; ++mine) {
        d->kernel(d->args, pool->scratch[self], chunk, chunk + 1);
      }
    }
    /* Release makes this worker's stores visible to whoever opens the next; acquire lets that one see them. */
    const bool last =
        mine > 0 && atomic_fetch_add_explicit(&pool->done, mine, memory_order_acq_rel) + mine == d->chunks;
    if (last)
      advance(pool, stage + 1, self);
    else
      wait_for_next(pool, stage);
  }
}

/* Returns when the epoch is not `seen` any more. */
static void wait_for_run(quern_pool* pool, uint32_t seen) {
  const int64_t spin_until = now_ns() + SPIN_AFTER_RUN_NS;
  for (unsigned pauses = 1; atomic_load(&pool->epoch) == seen; ++pauses) {
    relax();
    if (pauses % 64 != 0 || now_ns() < spin_until) continue;
    pthread_mutex_lock(&pool->bed);
    atomic_fetch_add(&pool->sleeping, 1);
    while (atomic_load(&pool->epoch) == seen) pthread_cond_wait(&pool->wake, &pool->bed);
    atomic_fetch_sub(&pool->sleeping, 1);
    pthread_mutex_unlock(&pool->bed);
  }
}

static void wake_all(quern_pool* pool) {
  atomic_fetch_add(&pool->epoch, 1);
  if (atomic_load(&pool->sleeping) == 0) return;
  pthread_mutex_lock(&pool->bed);
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->bed);
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
    /* Enter only while the run is open; sequentially consistent with run's close-then-look. */
    atomic_fetch_add(&pool->inside, 1);
    if (atomic_load(&pool->open)) work(pool, self->index);
    atomic_fetch_sub(&pool->inside, 1);
  }
}

static void run(void* context, const quern_dispatch* dispatches, int64_t count, void* const* scratch) {
  quern_pool* pool = (quern_pool*)context;
  pthread_mutex_lock(&pool->turn);
  const uint64_t saved = flush_denormals();
  pool->dispatches = dispatches;
  pool->count = count;
  pool->scratch = scratch;
  advance(pool, 0, 0);
  const bool shared = pool->threads > 1 && atomic_load(&pool->stage) < count;
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
  restore_denormals(saved);
  pthread_mutex_unlock(&pool->turn);
}

quern_pool* quern_pool_start(int64_t threads) {
  if (threads == 0) threads = quern_thread_count();
  if (threads < 1 || threads > MOST_THREADS) return NULL;
  quern_pool* pool = (quern_pool*)aligned_alloc(alignof(quern_pool), sizeof(quern_pool));
  worker* workers = (worker*)aligned_alloc(alignof(worker), (size_t)threads * sizeof(worker));
  if (pool == NULL || workers == NULL) {
    free(pool);
    free(workers);
    return NULL;
  }
  *pool = (quern_pool){.threads = threads, .workers = workers, .places = placement_start(threads)};
  pthread_mutex_init(&pool->turn, NULL);
  pthread_mutex_init(&pool->bed, NULL);
  pthread_cond_init(&pool->wake, NULL);
  for (int64_t w = 0; w < threads; ++w) {
    workers[w] = (worker){.pool = pool, .index = w};
    if (w == 0 || pthread_create(&workers[w].thread, NULL, worker_main, &workers[w]) == 0) continue;
    pool->threads = w; /* those there are; none is inside a run */
    quern_pool_stop(pool);
    return NULL;
  }
  return pool;
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
  pthread_cond_destroy(&pool->wake);
  pthread_mutex_destroy(&pool->bed);
  pthread_mutex_destroy(&pool->turn);
  placement_stop(pool->places);
  free(pool->workers);
  free(pool);
}
