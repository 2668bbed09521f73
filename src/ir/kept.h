// What NonZero, Compress, Unique and NonMaxSuppression have in common: how many elements their results have only data
// decide. A result is a tensor of its upper bound, in which what was kept comes first and zeros follow, and `count`
// says how much of it there is.
#pragma once

#include "ir/composite.h"

namespace quern::ir {

struct Kept {
  Value places;  // [n], i64: where each of n rows goes; n where it is not kept
  Value count;   // i64[]
};

// Of bools [n].
Kept PlacesOfKept(Expansion& e, Value chosen);
// Rows [n, ..] at their places, in zeros of the same type.
Value AtPlaces(Expansion& e, Value rows, const Kept& kept);
// The type of `count`.
inline TensorType CountType() { return {DType::kI64, {}}; }

}  // namespace quern::ir
