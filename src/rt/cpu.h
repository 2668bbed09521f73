/* What the processor says of itself, the one place that asks it. C without a library, since compiled models ask too,
 * before anything is known of the processor.
 *
 *   cpu_words cpu;
 *   cpu_read(&cpu);
 *   if (cpu_has(&cpu, &needs)) ...
 * Which bits a level needs: base/cpu_features.h. */
#ifndef QUERN_SRC_RT_CPU_H_
#define QUERN_SRC_RT_CPU_H_

#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Words of CPUID that name the features of levels. */
enum {
  CPU_1_ECX,
  CPU_7_EBX,
  CPU_7_ECX,
  CPU_7_EDX,
  CPU_7_1_EAX,
  CPU_EXT_ECX, /* leaf 0x80000001 */
  CPU_WORDS
};

typedef struct cpu_words {
  uint32_t word[CPU_WORDS];
  uint32_t state; /* bits of XCR0: registers that the system saves */
} cpu_words;

/* All zero on other architectures, whose levels need nothing beyond the base of theirs. */
static inline void cpu_read(cpu_words* cpu) {
  for (int w = 0; w < CPU_WORDS; ++w) cpu->word[w] = 0;
  cpu->state = 0;
#if defined(__x86_64__)
  uint32_t a, b, c, d;
  __cpuid(0, a, b, c, d);
  const uint32_t most = a;
  if (most >= 1) {
    __cpuid(1, a, b, c, d);
    cpu->word[CPU_1_ECX] = c;
    if ((c >> 27) & 1) { /* OSXSAVE: XCR0 may be read */
      uint32_t high;
      __asm__ volatile("xgetbv" : "=a"(cpu->state), "=d"(high) : "c"(0));
    }
  }
  if (most >= 7) {
    __cpuid_count(7, 0, a, b, c, d);
    cpu->word[CPU_7_EBX] = b;
    cpu->word[CPU_7_ECX] = c;
    cpu->word[CPU_7_EDX] = d;
    if (a >= 1) {
      __cpuid_count(7, 1, a, b, c, d);
      cpu->word[CPU_7_1_EAX] = a;
    }
  }
  __cpuid(0x80000000u, a, b, c, d);
  if (a >= 0x80000001u) {
    __cpuid(0x80000001u, a, b, c, d);
    cpu->word[CPU_EXT_ECX] = c;
  }
#endif
}

static inline int cpu_has(const cpu_words* cpu, const cpu_words* needs) {
  int has = (cpu->state & needs->state) == needs->state;
  for (int w = 0; w < CPU_WORDS; ++w) has &= (cpu->word[w] & needs->word[w]) == needs->word[w];
  return has;
}

/* Asks the system for the tile registers; not 0: granted. Linux keeps their 8 KB from a process until it asks; the
 * grant is for all its threads, also later ones. */
static inline int32_t cpu_permit_tiles(void) {
#if defined(__linux__) && defined(__x86_64__)
  const long arch_prctl = 158, request_permission = 0x1023, tile_data = 18;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(arch_prctl), "D"(request_permission), "S"(tile_data)
                   : "rcx", "r11", "memory");
  return result == 0;
#else
  return 0;
#endif
}

#endif /* QUERN_SRC_RT_CPU_H_ */
