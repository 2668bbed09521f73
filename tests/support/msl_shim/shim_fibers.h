// Threads of a threadgroup as fibers of the calling thread, for the shim of metal_stdlib.
//
//   quern_shim::RunThreads(256, [&](int thread) { kernel(x, y, chunk, thread); });     one threadgroup
//
// A fiber takes the next thread that has not begun; one whose thread ends without waiting takes another, so kernels
// without barriers run on one stack, call after call. Fibers that wait are woken by the last to arrive.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

#ifndef QUERN_ABI_H_
typedef struct quern_args {
  void* const* buffers;
  const int64_t* symbols;
} quern_args;
#endif

// Whether the threads of a group begin with the last: other orders, other missing barriers.
inline int& quern_shim_descending() {
  static int descending = 0;
  return descending;
}

namespace quern_shim {

constexpr int kMaxThreads = 1024, kLanes = 32;
constexpr size_t kStackBytes = 128 << 10;

// Saves the callee's registers, keeps the stack pointer in *from and goes on at `to`.
extern "C" void quern_shim_switch(void** from, void* to);
#if defined(__x86_64__)
asm(R"(
.text
.local quern_shim_switch
.type quern_shim_switch, @function
quern_shim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
constexpr int kSavedWords = 8,
              kReturnWord = 6;  // 6 registers, the return address, and one so that the stack is aligned
#elif defined(__aarch64__)
asm(R"(
.text
.local quern_shim_switch
.type quern_shim_switch, %function
quern_shim_switch:
  sub sp, sp, #176
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #176
  ret
)");
constexpr int kSavedWords = 22, kReturnWord = 11;
#else
#error "no switch of stacks for this processor"
#endif

// Those who wait for each other.
struct Group {
  int size = 0, arrived = 0, left = 0;  // left: threads that have ended
  int waiting[kMaxThreads];             // fibers
};

struct Fiber {
  void* stack = nullptr;  // its pointer while it does not run
  int number = 0;         // of the thread
  // What a warp exchanges is double-buffered: who is ahead by one exchange does not overwrite what others still read.
  unsigned exchanges = 0;
};

struct Worker {
  Fiber fibers[kMaxThreads];
  void* memory[kMaxThreads];  // of their stacks
  int fiber_count = 0;
  void* home = nullptr;    // the stack of the calling thread
  int ready[kMaxThreads];  // fibers that may go on, a ring
  int ready_first = 0, ready_count = 0;
  int idle[kMaxThreads];  // fibers without a thread
  int idle_count = 0;
  int current = 0;  // fiber
  int begun = 0, ended = 0, count = 0;
  Group everyone, simdgroups[kMaxThreads / kLanes];
  alignas(64) unsigned char boxes[kMaxThreads / kLanes][2][1024];
  void (*body)(void* context, int number) = nullptr;
  void* context = nullptr;
};

inline Worker*& WorkerSlot() {
  static thread_local Worker* worker = nullptr;
  return worker;
}
inline Worker& This() { return *WorkerSlot(); }

inline int Number() { return This().fibers[This().current].number; }
inline unsigned Lane() { return static_cast<unsigned>(Number() % kLanes); }
inline Group& Everyone() { return This().everyone; }
inline Group& Simdgroup() { return This().simdgroups[Number() / kLanes]; }
// Memory of the simdgroup for one exchange.
inline unsigned char* Exchange() {
  Worker& w = This();
  Fiber& fiber = w.fibers[w.current];
  return w.boxes[fiber.number / kLanes][fiber.exchanges++ % 2];
}

[[noreturn]] inline void Die(const char* what, int have, int want) {
  std::fprintf(stderr, "metal shim: %s: %d of %d threads\n", what, have, want);
  std::abort();
}

inline void* Mapped(size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) Die("no memory for", 0, 0);
  return memory;
}

void FiberMain();

inline void MakeFiber(Worker& w, int f) {
  void* const memory = w.memory[f] = Mapped(kStackBytes);
  if (mprotect(memory, 4096, PROT_NONE) != 0) Die("no memory for stacks", f, w.count);
  auto** const top = reinterpret_cast<void**>(static_cast<unsigned char*>(memory) + kStackBytes) - kSavedWords;
  top[kReturnWord] = reinterpret_cast<void*>(&FiberMain);
  w.fibers[f].stack = top;
}

// Gives the processor to a fiber that may go on, or to one that begins another thread, or back to the caller.
inline void Yield(void** from) {
  Worker& w = This();
  if (w.ready_count > 0) {
    w.current = w.ready[w.ready_first];
    w.ready_first = (w.ready_first + 1) % kMaxThreads;
    --w.ready_count;
  } else if (w.begun < w.count) {
    if (w.idle_count > 0) {
      w.current = w.idle[--w.idle_count];
    } else {
      w.current = w.fiber_count++;
      MakeFiber(w, w.current);
    }
  } else {
    if (w.ended < w.count) {
      if (w.everyone.arrived > 0)
        Die("a barrier of the threadgroup is reached by", w.everyone.arrived, w.everyone.size);
      Die("a simdgroup waits for lanes that have ended or wait elsewhere; ended", w.ended, w.count);
    }
    quern_shim_switch(from, w.home);
    return;
  }
  quern_shim_switch(from, w.fibers[w.current].stack);
}

inline void Wait(Group& group) {
  Worker& w = This();
  if (group.arrived + 1 == group.size) {
    for (int i = 0; i < group.arrived; ++i) w.ready[(w.ready_first + w.ready_count++) % kMaxThreads] = group.waiting[i];
    group.arrived = 0;
    return;  // the last goes on at once
  }
  group.waiting[group.arrived++] = w.current;
  Yield(&w.fibers[w.current].stack);
}

inline void FiberMain() {
  for (;;) {
    Worker& w = This();
    if (w.begun == w.count || w.ready_count > 0) {  // others first; whoever gives it a thread comes back here
      w.idle[w.idle_count++] = w.current;
      Yield(&w.fibers[w.current].stack);
      continue;
    }
    const int begun = w.begun++;
    Fiber& fiber = w.fibers[w.current];
    fiber.number = quern_shim_descending() != 0 ? w.count - 1 - begun : begun;
    fiber.exchanges = 0;
    w.body(w.context, fiber.number);
    ++w.ended;
  }
}

inline void RunGroup(Worker& w, int threads, void (*body)(void*, int), void* context) {
  w.count = threads;
  w.begun = w.ended = 0;
  w.everyone.size = threads;
  w.everyone.arrived = 0;
  for (int s = 0; s < threads / kLanes; ++s) w.simdgroups[s].size = kLanes, w.simdgroups[s].arrived = 0;
  w.body = body;
  w.context = context;
  Yield(&w.home);
}

// Gives back what the calling thread's threadgroups have used.
inline void Release() {
  Worker*& worker = WorkerSlot();
  if (worker == nullptr) return;
  for (int f = 0; f < worker->fiber_count; ++f) munmap(worker->memory[f], kStackBytes);
  munmap(worker, sizeof(Worker));
  worker = nullptr;
}

template <typename Kernel>
inline void RunThreads(int threads, const Kernel& kernel) {
  Worker*& worker = WorkerSlot();
  if (worker == nullptr) worker = new (Mapped(sizeof(Worker))) Worker;
  RunGroup(
      *worker, threads, [](void* context, int number) { (*static_cast<const Kernel*>(context))(number); },
      const_cast<Kernel*>(&kernel));
}

// A pointer as whatever a kernel's parameter is.
struct Pointer {
  const void* address;
  template <typename T>
  operator T*() const {
    return static_cast<T*>(const_cast<void*>(address));
  }
};

}  // namespace quern_shim
