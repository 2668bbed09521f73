// What happened in one run of a thread pool: for each worker and dispatch, when its first chunk started, when its last
// one ended, and how many it ran. Workers write their own rows alone, without locks and without allocating; the owner
// reads when the run is over.
//
//   RunRecord record(pool.threads(), dispatches.size());
//   pool.Run(dispatches, scratch, &record);
//   record.at(worker, dispatch).chunks
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ticks.h"
#include "runtime/counters.h"

namespace quern {

// One worker's part of one dispatch. Times are ticks (base/ticks.h); no chunks: it had no part.
struct RunSlice {
  uint64_t begin = 0, end = 0;
  int64_t chunks = 0;
};

// Move-only.
class RunRecord {
 public:
  // `counters`: one a worker, which it opens itself when it first takes part; empty: only time is recorded. They
  // outlive the record's runs. `memory`: of workers * dispatches slices, zero, which outlives the record; null: its
  // own.
  RunRecord(int workers, size_t dispatches, std::span<CounterGroup> counters = {}, RunSlice* memory = nullptr)
      : workers_(workers), dispatches_(dispatches), counters_(counters), slices_(memory) {
    if (memory == nullptr) own_.resize(workers * dispatches), slices_ = own_.data();
    if (!counters.empty()) counts_.resize(workers * dispatches);
  }
  RunRecord(RunRecord&&) = default;
  RunRecord& operator=(RunRecord&&) = default;

  int workers() const { return workers_; }
  size_t dispatches() const { return dispatches_; }
  const RunSlice& at(int worker, size_t dispatch) const { return slices_[worker * dispatches_ + dispatch]; }
  bool has_counts() const { return !counts_.empty(); }
  // Events while the worker ran the dispatch. Precondition: has_counts().
  const CounterValues& counts(int worker, size_t dispatch) const { return counts_[worker * dispatches_ + dispatch]; }
  // Of the whole run, by the thread that asked for it.
  uint64_t begin = 0, end = 0;

  // For the pool. A worker that enters the run.
  void Enter(int worker) {
    // An error stays an error for every worker and run: its owner has asked once before.
    if (!counters_.empty()) counters_[worker].Open(HardwareCounters()).IgnoreError();
    Fetch(worker * dispatches_);
  }
  // The worker's first chunk of the dispatch starts: at `since`, where the worker goes straight on from a dispatch that
  // is done, or now (0). A launch on the way of all others then costs one reading of the clock, not two.
  void Begin(int worker, size_t dispatch, uint64_t since) {
    const size_t at = worker * dispatches_ + dispatch;
    if (!counts_.empty()) counts_[at] = counters_[worker].Read();
    Fetch(at + 1);
    slices_[at].begin = since != 0 ? since : TicksBefore();
  }
  // Its last chunk so far has ended.
  void End(int worker, size_t dispatch, int64_t chunks) {
    RunSlice& slice = slices_[worker * dispatches_ + dispatch];
    slice.end = TicksAfter();
    slice.chunks = chunks;
  }
  // When the dispatch's very last chunk ended, as `since` of what follows it. For the worker that has found every chunk
  // done.
  uint64_t Done(size_t dispatch) const {
    uint64_t last = 0;
    for (int w = 0; w < workers_; ++w) last = std::max(last, at(w, dispatch).end);
    return counts_.empty() ? last : 0;
  }
  // It has no more. Before the dispatch is counted as done, so that the owner sees it.
  void Leave(int worker, size_t dispatch) {
    if (counts_.empty()) return;
    CounterValues& count = counts_[worker * dispatches_ + dispatch];
    const CounterValues now = counters_[worker].Read();
    for (int i = 0; i < kMaxCounters; ++i) count[i] = now[i] - count[i];
  }

 private:
  // Asks for the slice, and the one after it, ahead of their being written: a store that has to wait for memory would
  // hold up the atomic operation that ends a dispatch. Never faults, beyond the end of the memory either.
  void Fetch(size_t at) const {
    __builtin_prefetch(slices_ + at, 1);
    __builtin_prefetch(slices_ + at + 2, 1);
  }

  int workers_;
  size_t dispatches_;
  std::span<CounterGroup> counters_;
  std::vector<RunSlice> own_;
  RunSlice* slices_;                   // [worker, dispatch]
  std::vector<CounterValues> counts_;  // likewise
};

}  // namespace quern
