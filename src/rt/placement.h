/* Keeps the threads of a pool on processors of their own. The system's scheduler sees threads, not a pool: beside other
 * load it leaves two that wait for each other on one processor for as long as they live.
 *
 *   placement* places = placement_start(threads);  // by who makes the pool, before its workers
 *   placement_join(places, worker);                // by each worker, once
 *   placement_check(places, worker);               // by each thread (the caller is 0), as a run or dispatch starts
 *   placement_stop(places);                        // after the workers have ended
 *
 * A worker's affinity mask is what it inherited less the processors where the pool's other threads run, so that neither
 * waking nor balancing puts it beside one of them. It is narrowed no further: the system still chooses among the rest,
 * for workers of other pools and other processes too, and no processor is anybody's by number. Threads that meet all
 * the same, since the caller has moved say, part at their next check. The caller's own mask is never touched.
 *
 * Processors that are threads of one core count as one while the pool has no more threads than there are cores.
 * Null, which every function takes, where nothing is to be placed: a pool of one thread, more threads than the mask has
 * processors, a system without affinity. A mask that somebody sets from outside stays: that worker is left alone. */
#ifndef QUERN_SRC_RT_PLACEMENT_H_
#define QUERN_SRC_RT_PLACEMENT_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct placement placement;

placement* placement_start(int64_t threads);
void placement_join(placement* places, int64_t worker);
void placement_check(placement* places, int64_t worker);
void placement_stop(placement* places);

/* The core of each of `count` processors, by the first of its threads, from the files that the system has in
 * `folder`/cpuN/topology; a processor without such a file is a core. */
void placement_read_cores(const char* folder, int* cores, int count);

/* The same with the cores given, `count` of them. */
placement* placement_start_on(int64_t threads, const int* cores, int count);

#ifdef __cplusplus
}
#endif

#endif /* QUERN_SRC_RT_PLACEMENT_H_ */
