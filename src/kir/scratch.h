// Where each alloc, tile and workspace of a kernel lies in the worker's scratch. One layout, used by the emitters and
// by ScratchBytes, so that they cannot disagree.
//
//   grid ... {                       offset
//     alloc a : f32[100] scratch     0
//     for ... { tile t : f32[8, 16]  448       # 400 bytes, rounded up to 64
//               alloc b : f32[M]     960 }
//     for ... { alloc c : f32[64] }  448       # a sibling of the loop above: shares
//   }
// Each is 64-aligned; the rows of a tile are dense (its leading dimension is its last extent).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/extent.h"
#include "kir/kir.h"

namespace quern::kir {

struct ScratchLayout {
  std::map<std::string, Extent, std::less<>> offset;  // bytes, of each alloc and tile by name; a multiple of 64
  // One workspace serves all tile calls of the kernel, as only one runs at a time: `workspace` bytes at offset 0.
  int64_t workspace = 0;
  std::vector<Extent> ends;  // ends of the blocks' memory: the whole is the largest of these
};

// Symbolic sizes stay symbolic where that keeps 64-alignment; others count as their upper bound over the range.
// Precondition: types that LayoutBytes takes (Verify has passed).
ScratchLayout LayoutScratch(const Kernel& kernel);

// An upper bound of each size of a tile call, in the order of its op's `sizes`; INT64_MAX where there is none.
struct TileOp;
std::vector<int64_t> TileCallSizeBounds(const Kernel& kernel, const TileCall& call, const TileOp& op);

}  // namespace quern::kir
