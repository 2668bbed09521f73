/* Denormals flushed to zero in this thread, as every kernel expects: a denormal scale halves its speed, and the last
 * bits depend on it. */
#ifndef QUERN_RT_FLOAT_MODE_H_
#define QUERN_RT_FLOAT_MODE_H_

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

/* Returns the mode before. */
static inline uint64_t flush_denormals(void) {
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040); /* FTZ and DAZ */
  return saved;
}
static inline void restore_denormals(uint64_t saved) { _mm_setcsr((unsigned)saved); }

#elif defined(__aarch64__)

static inline uint64_t flush_denormals(void) {
  uint64_t saved;
  __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
  __asm__ volatile("msr fpcr, %0" : : "r"(saved | ((uint64_t)1 << 24))); /* FZ */
  return saved;
}
static inline void restore_denormals(uint64_t saved) { __asm__ volatile("msr fpcr, %0" : : "r"(saved)); }

#endif

#endif /* QUERN_RT_FLOAT_MODE_H_ */
