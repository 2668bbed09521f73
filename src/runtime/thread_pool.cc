#include "runtime/thread_pool.h"

#include "base/check.h"
#include "base/ticks.h"
#include "rt/pool.h"

namespace quern {
namespace {

RunRecord& RecordOf(void* self) { return *static_cast<RunRecord*>(self); }

pool_watch WatchOf(RunRecord& record) {
  return {
      &record,
      [](void* self, int64_t worker) { RecordOf(self).Enter(static_cast<int>(worker)); },
      [](void* self, int64_t worker, int64_t dispatch, uint64_t since) {
        RecordOf(self).Begin(static_cast<int>(worker), dispatch, since);
      },
      [](void* self, int64_t worker, int64_t dispatch, int64_t chunks) {
        RecordOf(self).End(static_cast<int>(worker), dispatch, chunks);
      },
      [](void* self, int64_t worker, int64_t dispatch) { RecordOf(self).Leave(static_cast<int>(worker), dispatch); },
      [](void* self, int64_t dispatch) { return RecordOf(self).Done(dispatch); }};
}

// The pool is C, and reads the flag as what it is there.
const bool* FlagOf(const std::atomic<bool>* cancel) {
  static_assert(sizeof(std::atomic<bool>) == sizeof(bool) && std::atomic<bool>::is_always_lock_free);
  return reinterpret_cast<const bool*>(cancel);
}

}  // namespace

StatusOr<std::unique_ptr<ThreadPool>> ThreadPool::Create(int threads) {
  auto pool = std::make_unique<ThreadPool>(threads);
  if (pool->threads() < threads)
    return absl::ResourceExhaustedError(absl::StrFormat("the system gives %d of %d threads", pool->threads(), threads));
  return pool;
}

ThreadPool::ThreadPool(int threads) : pool_(pool_start_some(threads)) {
  QUERN_CHECK(pool_ != nullptr);
  threads_ = static_cast<int>(quern_pool_runner(pool_).workers);
}

ThreadPool::~ThreadPool() { quern_pool_stop(pool_); }

bool ThreadPool::Run(std::span<const Dispatch> dispatches, std::span<void* const> scratch, RunRecord* record,
                     const std::atomic<bool>* cancel) {
  QUERN_CHECK(static_cast<int>(scratch.size()) >= threads_);
  const auto run = [&](const pool_watch* watch) {
    return pool_run(pool_, dispatches.data(), static_cast<int64_t>(dispatches.size()), scratch.data(), watch,
                    FlagOf(cancel));
  };
  if (record == nullptr) return run(nullptr);
  QUERN_CHECK(record->workers() == threads_ && record->dispatches() == dispatches.size());
  const pool_watch watch = WatchOf(*record);
  record->begin = TicksBefore();
  const bool all = run(&watch);
  record->end = TicksAfter();
  return all;
}

}  // namespace quern
