// The time since it was made, by the steady clock.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/time_span.h"

namespace quern {

class Stopwatch {
 public:
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  double Nanoseconds() const { return std::chrono::duration<double, std::nano>(Clock::now() - start_).count(); }
  // From then until now.
  TimeSpan Span(std::string_view name) const {
    return {std::string(name), Count(start_.time_since_epoch()), Count(Clock::now() - start_)};
  }

 private:
  using Clock = std::chrono::steady_clock;
  static int64_t Count(Clock::duration duration) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
  }
  Clock::time_point start_ = Clock::now();
};

}  // namespace quern
