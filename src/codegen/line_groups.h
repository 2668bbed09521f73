// Short lines in groups: internal to the family of lines.
#pragma once

#include <cstdint>

#include "kir/kir.h"

namespace quern::codegen {

// A loop over lines of at most kShortLine elements, cut where one step of the program waits for the end of another:
// each step then runs over all lines of a group before the next one begins, so that processors, which look ahead by a
// few hundred instructions, find work while the last places of a fold come together.
//
//   for i0 in 0..N { let r = sum vec c in 0..128 { x[i0, c] }; vec c in 0..128 { y[i0, c] = x[i0, c] / r } }
// becomes
//   for g in 0..N by 8 {
//     alloc r_lines : f32[8]
//     for i0 in g..min(g + 8, N) { let r = sum vec c in 0..128 { x[i0, c] }; r_lines[i0 - g] = r }
//     for i0 in g..min(g + 8, N) { let r = r_lines[i0 - g]; vec c in 0..128 { y[i0, c] = x[i0, c] / r } }
//   }
// The same operations in the same order for every line. What has other parts than those stays as it is.
inline constexpr int64_t kShortLine = 256;
inline constexpr int64_t kGroup = 8;
kir::Block InGroups(kir::Block lines);

}  // namespace quern::codegen
