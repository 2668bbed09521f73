// Loads that run down the columns of their buffer while the result runs along its own rows: what a Transpose is, and
// whatever is fused with one. Element by element each would touch a line of its own, so the nest goes by squares:
//
//   grid u0 in 0..1000 by 32, l0 in 0..1000 by 32 {
//     alloc q0 : f32[32, 32] @kn32
//     pack q0 = x0[l0 : +32, u0 : +32]                     # transposed in registers
//     for i0 in u0..u0 + 32 { vec c in l0..l0 + 32 { y0[i0, c] = q0[c - l0, i0 - u0] } }
//   }
// What no pack transposes, an integer say, is gathered from lines that the square keeps in the first cache.
#pragma once

#include <optional>
#include <vector>

#include "codegen/kernel_writer.h"

namespace quern::codegen {

// Of statements in a nest i0, i1, .., c over some extents: the dimension along whose elements such loads lie in memory.
std::optional<int> TurnedAxis(const RegionView& view, const std::vector<Extent>& dims, const kir::Block& body);

// The nest by squares, as the kernel's grid and body.
void EmitSquares(const RegionView& view, kir::Kernel& kernel, const std::vector<Extent>& dims, int axis,
                 const kir::Block& body);

}  // namespace quern::codegen
