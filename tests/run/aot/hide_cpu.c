/* Linked into a program, makes this processor look like a lesser one: the kernel lets CPUID fault, and the handler
 * answers in its place, without the features that HIDE names. Exits with 77 where the system cannot do that.
 *
 *   HIDE=avx512f,avx2 driver ... */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { ARCH_SET_CPUID_ = 0x1012 };

static int hide_avx512f, hide_avx2, hide_sse42, hide_osxsave;

static void answer(int signal, siginfo_t* info, void* context) {
  greg_t* r = ((ucontext_t*)context)->uc_mcontext.gregs;
  const uint8_t* code = (const uint8_t*)r[REG_RIP];
  uint32_t a, b, c, d;
  (void)info;
  if (code[0] != 0x0f || code[1] != 0xa2) _exit(128 + signal);
  const uint32_t leaf = (uint32_t)r[REG_RAX], part = (uint32_t)r[REG_RCX];
  syscall(SYS_arch_prctl, ARCH_SET_CPUID_, 1);
  __cpuid_count(leaf, part, a, b, c, d);
  syscall(SYS_arch_prctl, ARCH_SET_CPUID_, 0);
  if (leaf == 1 && hide_sse42) c &= ~(1u << 20);
  if (leaf == 1 && hide_osxsave) c &= ~(1u << 27);
  if (leaf == 7 && part == 0 && hide_avx2) b &= ~(1u << 5);
  if (leaf == 7 && part == 0 && hide_avx512f) b &= ~(1u << 16);
  r[REG_RAX] = a;
  r[REG_RBX] = b;
  r[REG_RCX] = c;
  r[REG_RDX] = d;
  r[REG_RIP] += 2;
}

__attribute__((constructor)) static void start(void) {
  const char* names = getenv("HIDE");
  if (names == NULL) return;
  hide_avx512f = strstr(names, "avx512f") != NULL;
  hide_avx2 = strstr(names, "avx2") != NULL;
  hide_sse42 = strstr(names, "sse4.2") != NULL;
  hide_osxsave = strstr(names, "osxsave") != NULL;
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = answer;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, NULL);
  if (syscall(SYS_arch_prctl, ARCH_SET_CPUID_, 0) != 0) _exit(77);
}
