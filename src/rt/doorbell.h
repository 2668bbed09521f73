/* Where the workers of a pool sleep until a word changes: on Linux the kernel watches the word itself, so that whoever
 * wakes does not queue for a lock first. */
#ifndef QUERN_SRC_RT_DOORBELL_H_
#define QUERN_SRC_RT_DOORBELL_H_

#include <stdatomic.h>
#include <stdint.h>

#if defined(__linux__)

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct doorbell {
  int unused;
} doorbell;

static inline void doorbell_open(doorbell* bell) { (void)bell; }
static inline void doorbell_close(doorbell* bell) { (void)bell; }
/* Returns soon after the word is not `seen` any more, or earlier. */
static inline void doorbell_wait(doorbell* bell, _Atomic uint32_t* word, uint32_t seen) {
  (void)bell;
  syscall(SYS_futex, (void*)word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}
/* After the word has changed. */
static inline void doorbell_ring(doorbell* bell, _Atomic uint32_t* word) {
  (void)bell;
  syscall(SYS_futex, (void*)word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

#else

#include <pthread.h>

typedef struct doorbell {
  pthread_mutex_t lock;
  pthread_cond_t rung;
} doorbell;

static inline void doorbell_open(doorbell* bell) {
  pthread_mutex_init(&bell->lock, NULL);
  pthread_cond_init(&bell->rung, NULL);
}
static inline void doorbell_close(doorbell* bell) {
  pthread_cond_destroy(&bell->rung);
  pthread_mutex_destroy(&bell->lock);
}
static inline void doorbell_wait(doorbell* bell, _Atomic uint32_t* word, uint32_t seen) {
  pthread_mutex_lock(&bell->lock);
  while (atomic_load(word) == seen) pthread_cond_wait(&bell->rung, &bell->lock);
  pthread_mutex_unlock(&bell->lock);
}
static inline void doorbell_ring(doorbell* bell, _Atomic uint32_t* word) {
  (void)word;
  pthread_mutex_lock(&bell->lock);
  pthread_cond_broadcast(&bell->rung);
  pthread_mutex_unlock(&bell->lock);
}

#endif

#endif /* QUERN_SRC_RT_DOORBELL_H_ */
