// The thread pool of models that are compiled in process: src/rt/pool.h, whose first comment says how it works, with
// errors, records of runs and cancelling.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "quern/abi.h"
#include "quern/rt.h"
#include "runtime/run_record.h"

namespace quern {

using Dispatch = quern_dispatch;

class ThreadPool {
 public:
  // `threads` >= 1 counts the caller of Run. Error: ResourceExhausted where the system has no more threads.
  static StatusOr<std::unique_ptr<ThreadPool>> Create(int threads);
  // The same, with fewer threads where there are no more.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Runs the dispatches in order. `scratch[w]` is the memory of worker w, 64-aligned, as large as the hungriest kernel
  // asks. Flush-to-zero is on inside and the caller's mode is restored. Runs of several threads take turns.
  // `record`: made for these threads and dispatches; takes the times. Null, as always but in a profile: a run costs one
  // branch a worker more than if there were no records. `cancel`: once it is true no further dispatch starts; null:
  // nobody asks. Returns whether all of them ran.
  bool Run(std::span<const Dispatch> dispatches, std::span<void* const> scratch, RunRecord* record = nullptr,
           const std::atomic<bool>* cancel = nullptr);

 private:
  quern_pool* pool_;
  int threads_;
};

// Threads worth using: the smallest of the affinity mask, the cgroup's CPU quota (rounded up) and the machine's cores.
int DefaultThreads();

}  // namespace quern
