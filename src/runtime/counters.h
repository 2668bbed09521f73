// Hardware counters of the calling thread, by Linux's perf_event_open: cycles, instructions and misses of the
// last-level cache. Many machines do not have them (virtual ones) or do not let a process look
// (kernel.perf_event_paranoid): the status then says why, in one sentence, and everything else goes on without.
//
//   CounterGroup counters;                          // one per thread
//   if (Status s = counters.Open(HardwareCounters()); !s.ok()) Say(s.message());
//   const CounterValues before = counters.Read();   // a system call, about half a microsecond
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace quern {

inline constexpr int kMaxCounters = 3;
using CounterValues = std::array<uint64_t, kMaxCounters>;

// One event, by the numbers of perf_event_open(2).
struct CounterEvent {
  const char* name;  // "cycles"
  uint32_t type;
  uint64_t config;
};
std::span<const CounterEvent> HardwareCounters();

// Move-only; belongs to the thread that opened it.
class CounterGroup {
 public:
  CounterGroup() = default;
  CounterGroup(CounterGroup&& other) noexcept;
  CounterGroup& operator=(CounterGroup&& other) noexcept;
  ~CounterGroup();

  // Starts counting user-space events of this thread, as one group; at most kMaxCounters. Again on an open group:
  // nothing. Errors: Unavailable with the event, the errno and what it means.
  Status Open(std::span<const CounterEvent> events);
  bool is_open() const { return count_ > 0; }
  // Values since Open, in the order of the events; zeros when not open.
  CounterValues Read() const;

 private:
  void Close();
  std::array<int, kMaxCounters> files_ = {-1, -1, -1};
  int count_ = 0;
};

// The sentence for an errno of perf_event_open.
std::string CounterError(const char* event, int error);

}  // namespace quern
