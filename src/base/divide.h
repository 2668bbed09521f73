// Quotients of integers toward plus and minus infinity; the divisor is not 0, and of either sign.
#pragma once

#include <cstdint>

namespace quern {

constexpr int64_t CeilDiv(int64_t value, int64_t by) {
  return value / by + (value % by != 0 && (value % by < 0) == (by < 0) ? 1 : 0);
}

constexpr int64_t FloorDiv(int64_t value, int64_t by) {
  return value / by - (value % by != 0 && (value % by < 0) != (by < 0) ? 1 : 0);
}

// How long parts of `all` are that are as few as parts of at most `most`, and of much the same length; both above 0.
constexpr int64_t EvenPart(int64_t all, int64_t most) { return CeilDiv(all, CeilDiv(all, most)); }

}  // namespace quern
