// The processor's own clock: what a profile can afford to read around every kernel (some ten nanoseconds, no system
// call).
//
//   const TickScale scale = TickScale::Start();
//   const uint64_t begin = TicksBefore();  Work();  const uint64_t end = TicksAfter();
//   scale.Finish();                        // measures the rate over the time since Start
//   scale.Nanoseconds(begin)               // on the clock of std::chrono::steady_clock
// Ticks have a constant rate and agree between cores on every x86-64 with an invariant counter (all since about 2008)
// and on aarch64.
#pragma once

#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace quern {

inline int64_t SteadyNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Ticks before work that starts now.
inline uint64_t TicksBefore() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  asm volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return static_cast<uint64_t>(SteadyNs());
#endif
}

// Ticks after work: waits for the instructions before it, which a plain read would overtake.
inline uint64_t TicksAfter() {
#if defined(__x86_64__)
  unsigned core;
  return __rdtscp(&core);
#else
  return TicksBefore();
#endif
}

// Both clocks at one time.
struct BothClocks {
  int64_t ns = 0;
  uint64_t ticks = 0;

  // Of several readings the one during which the fewest ticks went by: a thread may lose its core between the two.
  static BothClocks Read() {
    BothClocks best;
    uint64_t shortest = UINT64_MAX;
    for (int reading = 0; reading < 16; ++reading) {
      const uint64_t before = TicksBefore();
      const int64_t ns = SteadyNs();
      const uint64_t took = TicksAfter() - before;
      if (took < shortest) best = {ns, before + took / 2}, shortest = took;
    }
    return best;
  }
};

// From ticks to nanoseconds of the steady clock: two readings of both clocks, the further apart the better.
class TickScale {
 public:
  static TickScale Start() {
    TickScale scale;
    scale.start_ = BothClocks::Read();
    return scale;
  }
  // Waits, where it must, until ten microseconds have passed since Start.
  void Finish() {
    BothClocks now = BothClocks::Read();
    while (now.ns - start_.ns < 10'000) now = BothClocks::Read();
    ns_per_tick_ = static_cast<double>(now.ns - start_.ns) / static_cast<double>(now.ticks - start_.ticks);
  }
  double ns_per_tick() const { return ns_per_tick_; }
  int64_t Nanoseconds(uint64_t ticks) const {
    return start_.ns +
           static_cast<int64_t>(static_cast<double>(static_cast<int64_t>(ticks - start_.ticks)) * ns_per_tick_);
  }

 private:
  BothClocks start_;
  double ns_per_tick_ = 1;
};

}  // namespace quern
