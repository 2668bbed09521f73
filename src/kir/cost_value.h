// Integers as the cost model sees them: the value in the trip at hand, what it may be over all trips, and on which
// loops it depends. Internal to kir/cost.
#pragma once

#include <cstdint>
#include <span>

#include "kir/kir.h"

namespace quern::kir {

inline constexpr int64_t kFarIndex = int64_t{1} << 62;

struct CostValue {
  bool known = false;     // `value` is what it is in this trip
  bool monotone = false;  // the first and last trips of the loops give its extremes
  int64_t value = 0;
  int64_t low = -kFarIndex;  // over all trips
  int64_t high = kFarIndex;
  int64_t step = 1;    // over all trips it is a multiple of this away from `low`; 0: always the same
  uint64_t loops = 0;  // bit d: depends on the loop at depth d

  static CostValue Exact(int64_t value) { return {true, true, value, value, value, 0, 0}; }
  bool constant() const { return known && low == high; }
  bool bounded() const { return low > -kFarIndex && high < kFarIndex; }
};

// The result of an integer or bool operator; `dtype` is that of its last operand.
CostValue ApplyToValues(Op op, DType dtype, std::span<const CostValue> args);

}  // namespace quern::kir
