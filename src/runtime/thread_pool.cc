#include "runtime/thread_pool.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "base/check.h"
#include "base/generated_code.h"
#include "base/ticks.h"
#include "rt/placement.h"
#include "runtime/float_mode.h"

namespace quern {
namespace {

constexpr int64_t kSpinAfterRunNs = 200'000;
// Pauses before a waiting worker starts to yield: about 20 us, far longer than any healthy wait for a chunk.
constexpr int kPausesBeforeYield = 500;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void PrefetchBytes(const void* data, int64_t bytes) {
  const char* at = static_cast<const char*>(data);
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + i, 0, 1);
}

// A counter alone on its cache lines: every chunk touches one.
struct alignas(128) Counter {
  std::atomic<int64_t> value{0};
};

}  // namespace

struct ThreadPool::Shared {
  // The run in progress. Written by Run while `open` is false and nobody is inside.
  std::span<const Dispatch> dispatches;
  std::span<void* const> scratch;
  RunRecord* record = nullptr;
  const std::atomic<bool>* cancel = nullptr;
  bool cancelled = false;  // written by whoever advances
  int threads = 1;
  std::vector<Counter> done;   // chunks of each dispatch that are finished
  std::vector<Counter> taken;  // [dispatch, worker]: chunks of that worker's share that somebody has taken
  alignas(128) std::atomic<int64_t> stage{0};   // index of the dispatch that is open; dispatches.size() at the end
  alignas(128) std::atomic<uint32_t> epoch{0};  // counts runs; the futex word of sleeping workers
  std::atomic<bool> open{false};
  std::atomic<int> inside{0};
  std::atomic<int> sleeping{0};
  std::atomic<bool> stop{false};
  std::vector<pthread_t> workers;
  placement* places = nullptr;
  struct Start {
    Shared* shared;
    int worker;
  };
  std::vector<Start> starts;  // never moves: workers have pointers into it

  // kRecord: whether times go to `record`. Two instantiations, so that a run without a record has no code for one.
  // `since`: when the dispatch before was done, for a worker that goes straight on from there; else 0.

  // Runs dispatches from `index` on that one worker does alone, then opens the next parallel one, which it returns.
  template <bool kRecord>
  QUERN_CALLS_GENERATED_CODE int64_t Advance(int64_t index, int worker, [[maybe_unused]] uint64_t& since) {
    const int64_t end = static_cast<int64_t>(dispatches.size());
    while (index < end && !Cancels() && (dispatches[index].sequential || dispatches[index].chunks == 0)) {
      const Dispatch& d = dispatches[index];
      if (d.chunks > 0) {
        if constexpr (kRecord) record->Begin(worker, index, since);
        d.kernel(d.args, scratch[worker], 0, d.chunks);
        if constexpr (kRecord) {
          record->End(worker, index, d.chunks);
          record->Leave(worker, index);
          since = record->Done(index);
        }
      }
      ++index;
    }
    if (cancelled) index = end;
    stage.store(index, std::memory_order_release);
    return index;
  }
  bool Cancels() {
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) cancelled = true;
    return cancelled;
  }

  // Runs chunks of the dispatch until none is left to take, and counts them.
  template <bool kRecord>
  QUERN_CALLS_GENERATED_CODE int64_t TakeChunks(int64_t index, int worker, [[maybe_unused]] uint64_t since) {
    const Dispatch& d = dispatches[index];
    int64_t count = 0;
    for (int i = 0; i < threads; ++i) {
      const int owner = (worker + i) % threads;
      const int64_t begin = d.chunks * owner / threads, end = d.chunks * (owner + 1) / threads;
      std::atomic<int64_t>& next = taken[index * threads + owner].value;
      [[maybe_unused]] const int64_t before = count;
      for (int64_t chunk; (chunk = begin + next.fetch_add(1, std::memory_order_relaxed)) < end; ++count) {
        if constexpr (kRecord) {
          if (count == 0) record->Begin(worker, index, since);
        }
        d.kernel(d.args, scratch[worker], chunk, chunk + 1);
      }
      if constexpr (kRecord) {
        if (count > before) record->End(worker, index, count);
      }
    }
    if constexpr (kRecord) {
      if (count > 0) record->Leave(worker, index);
    }
    return count;
  }

  // Takes part in the open run until it ends.
  template <bool kRecord>
  void Work(int worker) {
    if constexpr (kRecord) record->Enter(worker);
    const int64_t end = static_cast<int64_t>(dispatches.size());
    int64_t prefetched = -1;
    int pauses = 0;
    uint64_t since = 0;
    int64_t opened = -1;    // by this worker, at `since`
    int64_t finished = -1;  // the last dispatch in which this worker found no chunk left
    while (true) {
      const int64_t index = stage.load(std::memory_order_acquire);
      if (index >= end) return;
      if (index == finished) {
        // Wait for the others' chunks; pull in what comes next meanwhile.
        if (prefetched != index && index + 1 < end) {
          prefetched = index;
          const Dispatch& ahead = dispatches[index].prefetch != nullptr ? dispatches[index] : dispatches[index + 1];
          if (ahead.prefetch != nullptr) PrefetchBytes(ahead.prefetch, ahead.prefetch_bytes);
        }
        if (++pauses < kPausesBeforeYield)
          Pause();
        else
          sched_yield();
        continue;
      }
      placement_check(places, worker);
      const int64_t mine = TakeChunks<kRecord>(index, worker, index == opened ? since : 0);
      finished = index;
      pauses = 0;
      // Release makes this worker's stores visible to whoever opens the next dispatch; acquire lets that one see them.
      if (mine > 0 && done[index].value.fetch_add(mine, std::memory_order_acq_rel) + mine == dispatches[index].chunks) {
        if constexpr (kRecord) since = record->Done(index);
        opened = Advance<kRecord>(index + 1, worker, since);
      }
    }
  }

  // Likewise, whether it is recorded or not.
  void TakePart(int worker) {
    if (record != nullptr)
      Work<true>(worker);
    else
      Work<false>(worker);
  }

  static void* Main(void* argument) {
    const Start& start = *static_cast<const Start*>(argument);
    start.shared->WorkerLoop(start.worker);
    return nullptr;
  }

  void WorkerLoop(int worker) {
    FlushDenormals mode;
    placement_join(places, worker);
    uint32_t seen = 0;
    while (true) {
      const int64_t spin_until = SteadyNs() + kSpinAfterRunNs;
      int pauses = 0;
      while (epoch.load(std::memory_order_acquire) == seen) {
        if (++pauses % 64 != 0) {
          Pause();
          continue;
        }
        if (SteadyNs() < spin_until) continue;
        sleeping.fetch_add(1);
        if (epoch.load() == seen) {
          syscall(SYS_futex, reinterpret_cast<uint32_t*>(&epoch), FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
        }
        sleeping.fetch_sub(1);
      }
      seen = epoch.load(std::memory_order_acquire);
      if (stop.load()) return;
      // Enter only while the run is open; sequentially consistent with Run's close-then-look.
      inside.fetch_add(1);
      if (open.load()) TakePart(worker);
      inside.fetch_sub(1);
    }
  }

  void WakeAll() {
    epoch.fetch_add(1);
    if (sleeping.load() > 0) {
      syscall(SYS_futex, reinterpret_cast<uint32_t*>(&epoch), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
    }
  }
};

StatusOr<std::unique_ptr<ThreadPool>> ThreadPool::Create(int threads, HostPool host) {
  auto pool = std::make_unique<ThreadPool>(threads, host);
  const int made = static_cast<int>(pool->shared_->workers.size()) + 1;
  if (host.run == nullptr && made < threads)
    return absl::ResourceExhaustedError(absl::StrFormat("the system gives %d of %d threads", made, threads));
  return pool;
}

ThreadPool::ThreadPool(int threads, HostPool host)
    : threads_(threads), host_(host), shared_(std::make_unique<Shared>()) {
  QUERN_CHECK(threads >= 1);
  shared_->threads = threads;
  if (host_.run != nullptr) return;
  shared_->places = placement_start(threads);
  shared_->starts.reserve(threads);
  for (int w = 1; w < threads; ++w) {
    shared_->starts.push_back({shared_.get(), w});
    pthread_t worker;
    // std::thread would throw, and a pool of fewer workers runs everything too: they take each other's chunks.
    if (pthread_create(&worker, nullptr, Shared::Main, &shared_->starts.back()) != 0) break;
    shared_->workers.push_back(worker);
  }
}

ThreadPool::~ThreadPool() {
  shared_->stop.store(true);
  shared_->WakeAll();
  for (const pthread_t worker : shared_->workers) pthread_join(worker, nullptr);
  placement_stop(shared_->places);
}

bool ThreadPool::Run(std::span<const Dispatch> dispatches, std::span<void* const> scratch, RunRecord* record,
                     const std::atomic<bool>* cancel) {
  QUERN_CHECK(static_cast<int>(scratch.size()) >= threads_);
  shared_->cancel = cancel;
  shared_->cancelled = false;
  if (record == nullptr) {
    RunDispatches(dispatches, scratch, nullptr);
    return !shared_->cancelled;
  }
  QUERN_CHECK(record->workers() == threads_ && record->dispatches() == dispatches.size());
  record->begin = TicksBefore();
  RunDispatches(dispatches, scratch, record);
  record->end = TicksAfter();
  return !shared_->cancelled;
}

void ThreadPool::RunDispatches(std::span<const Dispatch> dispatches, std::span<void* const> scratch,
                               RunRecord* record) {
  FlushDenormals mode;
  Shared& s = *shared_;
  if (s.done.size() < dispatches.size()) {
    s.done = std::vector<Counter>(dispatches.size());
    s.taken = std::vector<Counter>(dispatches.size() * threads_);
  }
  for (size_t i = 0; i < dispatches.size(); ++i) s.done[i].value.store(0, std::memory_order_relaxed);
  for (size_t i = 0; i < dispatches.size() * threads_; ++i) s.taken[i].value.store(0, std::memory_order_relaxed);
  s.dispatches = dispatches;
  s.scratch = scratch;
  s.record = record;
  uint64_t since = 0;
  if (record != nullptr) {
    record->Enter(0);
    s.Advance<true>(0, 0, since);
  } else {
    s.Advance<false>(0, 0, since);
  }
  if (host_.run != nullptr) {
    auto task = [](void* context, int worker) {
      FlushDenormals worker_mode;
      static_cast<Shared*>(context)->TakePart(worker);
    };
    host_.run(host_.host, threads_, task, &s);
    return;
  }
  const bool shared_work =
      threads_ > 1 && s.stage.load(std::memory_order_relaxed) < static_cast<int64_t>(dispatches.size());
  if (shared_work) {
    placement_check(s.places, 0);  // before any worker wakes
    s.open.store(true);
    s.WakeAll();
  }
  s.TakePart(0);
  if (shared_work) {
    s.open.store(false);
    while (s.inside.load() > 0) Pause();
  }
}

}  // namespace quern
