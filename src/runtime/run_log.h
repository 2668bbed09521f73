// The runs of an executable, recorded one after the other: what a profile is made from. Memory for a run is taken
// before it starts, so that nothing is allocated while kernels run.
//
//   RunLog log(pool.threads(), {.counters = false});
//   executable->Record(&log);   // until Record(nullptr)
//   log.Mark(kDecode);          // the runs from here on
//   for (const LoggedRun& run : log.runs()) run.parts[0].record.at(worker, launch)
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ticks.h"
#include "runtime/counters.h"
#include "runtime/run_record.h"

namespace quern {

// Launches of a plan that ran in one go: all of a plan without loops and branches, else a part of it, which may come
// several times.
struct RunPart {
  int first = 0;     // among the plan's launches
  RunRecord record;  // of as many as there are
};

// What the owner of the log did meanwhile, in ticks.
struct LoggedSpan {
  std::string name;
  int mark = 0;
  uint64_t begin = 0, end = 0;
};

struct LoggedRun {
  int mark = 0;                 // see RunLog::Mark
  int variant = 0;              // of the executable
  std::vector<int64_t> values;  // of the signature's symbols, by name
  int64_t start_ns = 0;         // on the steady clock
  int64_t bind_ns = 0;          // following sizes and pointers, before the first kernel
  std::deque<RunPart> parts;    // in the order in which they ran

  // Ticks from the first launch to the end of the last one.
  uint64_t ticks() const { return parts.empty() ? 0 : parts.back().record.end - parts.front().record.begin; }
};

class RunLog {
 public:
  // Counters are read around each worker's part of each dispatch: two system calls each.
  struct Options {
    bool counters = false;
  };
  RunLog(int workers, Options options) : workers_(workers), scale_(TickScale::Start()) {
    if (options.counters) counters_.resize(workers);
    slabs_.emplace_back(kSlab);
  }

  // What the runs from here on are, in the owner's own numbers.
  void Mark(int mark) { mark_ = mark; }
  void AddSpan(std::string name, uint64_t begin, uint64_t end) {
    spans_.push_back({std::move(name), mark_, begin, end});
  }
  int mark() const { return mark_; }
  // The runs, in order. Call Finish first: it measures the rate of the ticks.
  const std::deque<LoggedRun>& runs() const { return runs_; }
  const std::deque<LoggedSpan>& spans() const { return spans_; }
  const TickScale& scale() const { return scale_; }
  int workers() const { return workers_; }
  void Finish() { scale_.Finish(); }

  // For the executable: a run that starts now.
  LoggedRun& Add(int variant, std::span<const int64_t> values) {
    runs_.push_back({mark_, variant, {values.begin(), values.end()}, 0, 0, {}});
    return runs_.back();
  }
  // Memory for `launches` launches of that run, from launch `first` on, that start now.
  RunRecord& AddPart(int first, size_t launches) {
    const size_t slices = static_cast<size_t>(workers_) * launches;
    if (slices > slabs_.back().size() - used_) slabs_.emplace_back(std::max(slices, kSlab)), used_ = 0;
    RunSlice* memory = slabs_.back().data() + used_;
    used_ += slices;
    std::deque<RunPart>& parts = runs_.back().parts;
    parts.push_back({first, RunRecord(workers_, launches, counters_, memory)});
    return parts.back().record;
  }

 private:
  // Slices that are there, and touched, before they are needed: the first touch of a page would cost more than a short
  // step.
  static constexpr size_t kSlab = (size_t{2} << 20) / sizeof(RunSlice);

  int workers_;
  int mark_ = 0;
  TickScale scale_;
  std::vector<CounterGroup> counters_;  // by worker; empty: off
  std::deque<std::vector<RunSlice>> slabs_;
  size_t used_ = 0;  // of the last slab
  std::deque<LoggedRun> runs_;
  std::deque<LoggedSpan> spans_;
};

}  // namespace quern
