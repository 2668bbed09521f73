// Maps that read down the columns of a buffer while the result runs along its own rows, as a Transpose does and
// whatever is fused with one, and maps whose rows have few elements. Element by element the first would touch a line of
// the cache each, and the second fill a part of a vector, so the nest goes by rectangles, which a pack turns in
// registers:
//
//   grid u0 in 0..1000 by 256, l0 in 0..1000 by 256 {
//     pack y0[u0 : +256, l0 : +256] = x0[l0 : +256, u0 : +256]                      # a Transpose and nothing else
//   }
//   grid u0 in 0..1000 by 32, l0 in 0..1000 by 128 {
//     alloc q0 : f32[32, 128]
//     pack q0 = x0[l0 : +128, u0 : +32]
//     for i0 in u0..u0 + 32 { vec c in l0..l0 + 128 { y0[i0, c] = q0[i0 - u0, c - l0] * x1[i0, c] } }
//   }
//
// Where the result's rows are short, planes that become pixels or pixels that stay pixels, vectors run along another
// axis, and it is the results that are turned:
//
//   grid u0 in 0..3 by 3, l0 in 0..786432 by 1344 {
//     alloc q0, q1 : f32[3, 1344]
//     pack q0 = x1[l0 : +1344, 0 : +3]
//     for c in 0..3 { vec i0 in l0..l0 + 1344 { q1[c, i0 - l0] = x0[c, i0] * q0[c, i0 - l0] + x2[c] } }
//     pack y0[l0 : +1344, 0 : +3] = q1
//   }
#pragma once

#include <optional>
#include <vector>

#include "codegen/kernel_writer.h"

namespace quern::codegen {

// The axes of a nest that rectangles lie along. `inner` is what vectors run along: the last dimension, or `outer` is.
struct TurnedAxes {
  int outer, inner;
};

// Those of statements in a nest i0, i1, .., c over some extents, where rectangles are worth while.
std::optional<TurnedAxes> FindTurnedAxes(const RegionView& view, const std::vector<Extent>& dims,
                                         const kir::Block& body);

// The nest by rectangles, as the kernel's grid and body.
void EmitTurned(const RegionView& view, kir::Kernel& kernel, const std::vector<Extent>& dims, TurnedAxes axes,
                const kir::Block& body);

}  // namespace quern::codegen
