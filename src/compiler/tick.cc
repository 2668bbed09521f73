#include "quern/tick.h"

#include <thread>

#include "base/ticks.h"

namespace quern {

Tick Tick::Now() { return {TicksBefore()}; }

double Tick::Nanoseconds(Tick from, Tick to) {
  static const double ns_per_tick = [] {
    // Each end is known to some hundred nanoseconds, which is a hundredth of the promise.
    TickScale scale = TickScale::Start();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    scale.Finish();
    return scale.ns_per_tick();
  }();
  return static_cast<double>(static_cast<int64_t>(to.count - from.count)) * ns_per_tick;
}

}  // namespace quern
