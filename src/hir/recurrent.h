// What the blocks Lstm and Gru have in common: layers of the op of that name, one on top of the other.
//
//   x [B, S, I]   w [D, gates H, I] of the first layer   r [layers, D, gates H, H]   b [layers, D, 2 gates H]
//   ws [layers - 1, D, gates H, D H] of the others       h, and c of an Lstm, [layers D, B, H]
//   -> y [B, S, D H] of the last layer, and h, c behind the last token of all
//
// D is 2 where the layers are bidirectional. Absent: b zeros, ws where there is one layer, states of zeros.
#pragma once

#include "hir/block.h"

namespace quern::hir {

// The block of `op`, whose cells have `gates` gates and `states` states.
const BlockDef* RecurrentBlock(const char* op, const char* doc, const char* label, const char* carry_label, int gates,
                               int states);

}  // namespace quern::hir
