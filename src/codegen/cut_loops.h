// Cuts long elementwise vec loops into several loops over a strip of elements that stays in a core's cache:
//
//   vec c in 0..N {                          alloc keep0 : f32[1024]
//     y[c] = f(g(x[c]))                      for p0 in 0..N by 1024 {
//   }                                   =>     vec c in p0..min(p0 + 1024, N) { keep0[c - p0] = g(x[c]) }
//                                              vec c in p0..min(p0 + 1024, N) { y[c] = f(keep0[c - p0]) }
//                                            }
//
// Where is choose_cuts.h's, what may be kept is loop_values.h's. The bits of the results stay: what is kept is kept in
// its own dtype, and sums beside the products that they may contract. Loops with anything else than stores in them,
// and those that read what they write, stay as they are.
#pragma once

#include "family/target_facts.h"
#include "kir/kir.h"

namespace quern::codegen {

kir::Kernel CutLoops(kir::Kernel kernel, const family::TargetFacts& facts);

}  // namespace quern::codegen
