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

}  // namespace quern
