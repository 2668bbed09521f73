/* Placement by affinity masks, where the system is Linux; elsewhere none. */
#include "rt/placement.h"

#include <stddef.h>

#if defined(__linux__)

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { UNKNOWN = -1 };

/* One thread of the pool. All but `cpu` only under the lock. */
typedef struct member {
  alignas(64) _Atomic int cpu; /* where it ran when it last looked */
  pid_t thread;                /* 0: the caller, or not here yet */
  bool left_alone;
  cpu_set_t inherited, given; /* its mask when it came; what was made of it */
} member;

struct placement {
  pthread_mutex_t lock;
  int64_t threads;
  int cores[CPU_SETSIZE]; /* of each processor */
  member* members;
};

static int core_of(const placement* places, int cpu) { return cpu == UNKNOWN ? UNKNOWN : places->cores[cpu]; }

/* Whether another thread of the pool was last seen on the core. */
static bool taken(const placement* places, int64_t self, int core) {
  for (int64_t m = 0; m < places->threads; ++m) {
    const int cpu = atomic_load_explicit(&places->members[m].cpu, memory_order_relaxed);
    if (m != self && cpu != UNKNOWN && core_of(places, cpu) == core) return true;
  }
  return false;
}

/* Gives the worker what the others leave. It may be any thread's call. */
static void move(placement* places, int64_t worker) {
  member* mover = &places->members[worker];
  cpu_set_t mask;
  if (mover->thread == 0 || mover->left_alone) return;
  mover->left_alone = sched_getaffinity(mover->thread, sizeof(mask), &mask) != 0 || !CPU_EQUAL(&mask, &mover->given);
  if (mover->left_alone) return;
  CPU_ZERO(&mask);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mover->inherited) && !taken(places, worker, core_of(places, cpu))) CPU_SET(cpu, &mask);
  }
  /* A set of none is refused; so are processors that a cgroup took away meanwhile. */
  if (sched_setaffinity(mover->thread, sizeof(mask), &mask) != 0) return;
  mover->given = mask;
  const bool itself = mover->thread == (pid_t)syscall(SYS_gettid);
  const int cpu = itself ? sched_getcpu() : atomic_load_explicit(&mover->cpu, memory_order_relaxed);
  /* One that sleeps goes when it wakes, and says then where it is. */
  atomic_store_explicit(&mover->cpu, cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(cpu, &mask) ? cpu : UNKNOWN,
                        memory_order_relaxed);
}

placement* placement_start_on(int64_t threads, const int* cores, int count) {
  cpu_set_t mask;
  if (threads < 2 || sched_getaffinity(0, sizeof(mask), &mask) != 0 || threads > CPU_COUNT(&mask)) return NULL;
  placement* places = (placement*)malloc(sizeof(placement));
  member* members = (member*)aligned_alloc(alignof(member), (size_t)threads * sizeof(member));
  if (places == NULL || members == NULL) {
    free(places);
    free(members);
    return NULL;
  }
  places->threads = threads;
  places->members = members;
  pthread_mutex_init(&places->lock, NULL);
  for (int64_t m = 0; m < threads; ++m) members[m] = (member){.cpu = UNKNOWN};
  atomic_store_explicit(&members[0].cpu, sched_getcpu(), memory_order_relaxed);
  cpu_set_t distinct;
  CPU_ZERO(&distinct);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    places->cores[cpu] = cpu < count ? cores[cpu] : cpu;
    if (CPU_ISSET(cpu, &mask)) CPU_SET(places->cores[cpu], &distinct);
  }
  if (CPU_COUNT(&distinct) < threads) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) places->cores[cpu] = cpu;
  }
  return places;
}

void placement_read_cores(const char* folder, int* cores, int count) {
  for (int cpu = 0; cpu < count; ++cpu) {
    char path[512];
    snprintf(path, sizeof(path), "%s/cpu%d/topology/thread_siblings_list", folder, cpu);
    FILE* file = fopen(path, "r");
    int first = cpu;
    if (file != NULL && (fscanf(file, "%d", &first) != 1 || first < 0 || first >= count)) first = cpu;
    if (file != NULL) fclose(file);
    cores[cpu] = first;
  }
}

/* Whether some core has two threads that are in use; else a file for each processor need not be read. */
static bool cores_have_threads(void) {
  FILE* file = fopen("/sys/devices/system/cpu/smt/active", "r");
  int active = 0;
  if (file == NULL) return false;
  if (fscanf(file, "%d", &active) != 1) active = 0;
  fclose(file);
  return active == 1;
}

placement* placement_start(int64_t threads) {
  if (threads < 2) return NULL;
  int cores[CPU_SETSIZE];
  const long configured = sysconf(_SC_NPROCESSORS_CONF);
  const int count = !cores_have_threads() || configured < 0 ? 0
                    : configured < CPU_SETSIZE              ? (int)configured
                                                            : CPU_SETSIZE;
  placement_read_cores("/sys/devices/system/cpu", cores, count);
  return placement_start_on(threads, cores, count);
}

void placement_join(placement* places, int64_t worker) {
  if (places == NULL) return;
  member* self = &places->members[worker];
  pthread_mutex_lock(&places->lock);
  if (sched_getaffinity(0, sizeof(self->inherited), &self->inherited) == 0) {
    self->given = self->inherited;
    self->thread = (pid_t)syscall(SYS_gettid);
    move(places, worker);
  }
  pthread_mutex_unlock(&places->lock);
}

/* Who is somewhere else than before says so, and whoever would share a core goes: a worker that comes to where another
 * is, and every worker that is, or might wake, where the caller has come to. */
static void moved(placement* places, int64_t self, int cpu) {
  if (pthread_mutex_trylock(&places->lock) != 0) return; /* at the next check then */
  atomic_store_explicit(&places->members[self].cpu, cpu, memory_order_relaxed);
  if (self != 0) {
    if (taken(places, self, core_of(places, cpu))) move(places, self);
  } else {
    for (int64_t worker = 1; worker < places->threads; ++worker) {
      const member* other = &places->members[worker];
      const int at = atomic_load_explicit(&other->cpu, memory_order_relaxed);
      const bool beside = at != UNKNOWN && core_of(places, at) == core_of(places, cpu);
      if (beside || CPU_ISSET(cpu, &other->given)) move(places, worker);
    }
  }
  pthread_mutex_unlock(&places->lock);
}

void placement_check(placement* places, int64_t worker) {
  if (places == NULL) return;
  const int cpu = sched_getcpu();
  if (cpu < 0 || cpu >= CPU_SETSIZE) return;
  const member* self = &places->members[worker];
  const int caller = atomic_load_explicit(&places->members[0].cpu, memory_order_relaxed);
  const bool stays = atomic_load_explicit(&self->cpu, memory_order_relaxed) == cpu;
  if (stays && (worker == 0 || core_of(places, caller) != core_of(places, cpu))) return;
  moved(places, worker, cpu);
}

void placement_stop(placement* places) {
  if (places == NULL) return;
  pthread_mutex_destroy(&places->lock);
  free(places->members);
  free(places);
}

#else

placement* placement_start(int64_t threads) {
  (void)threads;
  return NULL;
}
placement* placement_start_on(int64_t threads, const int* cores, int count) {
  (void)threads, (void)cores, (void)count;
  return NULL;
}
void placement_read_cores(const char* folder, int* cores, int count) {
  (void)folder;
  for (int cpu = 0; cpu < count; ++cpu) cores[cpu] = cpu;
}
void placement_join(placement* places, int64_t worker) { (void)places, (void)worker; }
void placement_check(placement* places, int64_t worker) { (void)places, (void)worker; }
void placement_stop(placement* places) { (void)places; }

#endif
