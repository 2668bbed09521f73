// Running values: what a vec loop may carry from one iteration to the next.
//
//   var s : f32 = 0
//   vec c in 0..N {
//     s := s + x[c]      # s is assigned nowhere else in the loop
//     y[c] = s           # with x[c]; in front of the assignment: without
//   }
#pragma once

#include <optional>

#include "kir/kir.h"

namespace quern::kir {

// The operator of `x := x op e` where op is that of a reduction and x is not in e; nullopt of any other assignment.
std::optional<ReduceOp> RunningOp(const Assign& assign);

}  // namespace quern::kir
