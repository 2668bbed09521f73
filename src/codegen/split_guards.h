// Vector loops over what a window sees, cut where it begins to reach outside: the middle part, the longest, reads
// without looking.
//
//   vec c in 0..112 { .. x[q, c - 1] else 0 .. x[q, c + 1] else 0 .. }
// becomes
//   vec c in 0..16 { .. }   vec c in 16..96 { .. }   vec c in 96..112 { .. }
//
// The loops have the same text, guards and all: in the middle one every index is in bounds by the bounds of the loop,
// which is what emitters leave guards out for.
#pragma once

#include "kir/kir.h"

namespace quern::codegen {

// The body of `kernel` with those of its vector loops cut whose bounds are constants, and whose guarded loads have
// indices that are an integer times the loop's, and an integer.
kir::Block SplitGuards(const kir::Kernel& kernel);

}  // namespace quern::codegen
