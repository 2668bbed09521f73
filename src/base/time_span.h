// A stretch of time by name: what compile reports and traces are made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quern {

struct TimeSpan {
  std::string name;
  int64_t start = 0, duration = 0;  // nanoseconds of the steady clock
};
using TimeSpans = std::vector<TimeSpan>;

}  // namespace quern
