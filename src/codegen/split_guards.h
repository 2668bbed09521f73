// Loops over what a window sees, cut where it begins to reach outside: the middle part, the longest, reads without
// looking.
//
//   for q in q0 .. min(q0 + 36, 112) { vec c in 0..112 { .. x[q - 1, c - 1] else 0 .. x[q + 1, c + 1] else 0 .. } }
// becomes
//   for q in q0 .. min(q0 + 36, 1) { .. }
//   for q in max(q0, 1) .. min(q0 + 36, 111) {
//     vec c in 0..16 { .. }   vec c in 16..96 { .. }   vec c in 96..112 { .. }
//   }
//   for q in max(q0, 111) .. min(q0 + 36, 112) { .. }
//
// The loops have the same text, guards and all: in the middle one every index is in bounds by the bounds of the loops,
// which is what emitters leave guards out for.
#pragma once

#include "kir/kir.h"

namespace quern::codegen {

// The body of `kernel` with loops cut whose bounds are constants, or of `for` the grid's index and a minimum with a
// constant, and whose guarded loads have indices that are an integer times the loop's, and an integer.
kir::Block SplitGuards(const kir::Kernel& kernel);

}  // namespace quern::codegen
