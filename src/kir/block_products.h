// The tile ops and packs of block formats: one set for each format of weights, whose file (base/formats) says with
// which activations the SIMD library multiplies it. The ops that take f32 activations are there for all: where src/simd
// has no function of that name they run as their meaning, and packs element by element.
//
//   dot_q4_K y += w, x ahead 8192      y : f32[m, n]   w : q4_K[n, k] @blocks   x : q8_K[m, k] @planar
//   dot_q4_K_x                         the same with x : f32[m, k]
//   mma_q4_K y += x, w                 y : f32[m, n]   x : q8_K[m, k] @planar   w : q4_K[n, k] @panel16
#pragma once

#include <vector>

#include "kir/tile_op.h"

namespace quern::kir {

// dot_NAME and mma_NAME of weights that have tiles, dot_NAME_x of all. The op is kept for as long as the process.
std::vector<const TileOp*> BlockProducts();
// Blocks to panels of the same format and to f32.
std::vector<PackRow> BlockPacks();

}  // namespace quern::kir
