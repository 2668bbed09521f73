// The thread pool: runs a sequence of kernel dispatches with every worker, chunk by chunk.
//
// A run is a list of dispatches. All workers walk it together. Each has a share of the current dispatch's chunks, an
// unbroken run of them, so that weights stream by in order and what a chunk prefetches beyond its end is the worker's
// own next chunk; who has finished its share takes from the others'. One atomic add takes a chunk. Whoever completes a
// dispatch's last chunk runs the sequential dispatches that follow, on the spot, and opens the next parallel one. There
// is no other barrier: a worker that is late or descheduled holds up only the chunk it has in hand.
// Work is cut by the kernels, never by the number of threads, so results do not depend on it.
//
// Workers spin for the whole of a run and about 200 us after it (a wake-up from the futex costs tens of microseconds),
// yield when the waiting grows long, then sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "quern/abi.h"
#include "runtime/run_record.h"

namespace quern {

using Dispatch = quern_dispatch;

// Runs `task(context, worker)` for workers 0..n-1, concurrently as far as it can, and returns when all have returned.
// Lets a host use its own threads. Any degree of concurrency is correct.
struct HostPool {
  void* host = nullptr;
  void (*run)(void* host, int workers, void (*task)(void* context, int worker), void* context) = nullptr;
};

class ThreadPool {
 public:
  // `threads` >= 1 counts the caller of Run. With a host pool no thread is made. Error: ResourceExhausted where the
  // system has no more threads.
  static StatusOr<std::unique_ptr<ThreadPool>> Create(int threads, HostPool host = {});
  // The same, with fewer threads where there are no more.
  explicit ThreadPool(int threads, HostPool host = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Runs the dispatches in order. `scratch[w]` is the memory of worker w, 64-aligned, as large as the hungriest kernel
  // asks. Flush-to-zero is on inside and the caller's mode is restored. One Run at a time: not thread-safe.
  // `record`: made for these threads and dispatches; takes the times. Null, as always but in a profile: a run costs one
  // branch a worker more than if there were no records. `cancel`: once it is true no further dispatch starts; null:
  // nobody asks. Returns whether all of them ran.
  bool Run(std::span<const Dispatch> dispatches, std::span<void* const> scratch, RunRecord* record = nullptr,
           const std::atomic<bool>* cancel = nullptr);

 private:
  void RunDispatches(std::span<const Dispatch> dispatches, std::span<void* const> scratch, RunRecord* record);
  struct Shared;
  int threads_;
  HostPool host_;
  std::unique_ptr<Shared> shared_;
};

// Threads worth using: the smallest of the affinity mask, the cgroup's CPU quota (rounded up) and the machine's cores.
int DefaultThreads();

}  // namespace quern
