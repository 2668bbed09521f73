// Arena placement: offsets for buffers that are live over intervals of launches, so that two share memory only when
// their intervals do not meet.
//
//   buffer   live      bytes              offset
//   a        [0, 2]    1000               0
//   b        [1, 3]    4096               1024
//   c        [3, 5]    512                0
//   d        [0, 5]    64*SEQ (unbounded) 5120
// Sizes with an upper bound over the ranges count as that bound: largest first, each into the smallest gap that takes
// it (best fit). What has none, or a bound too large to reserve, goes behind them into stacked slots: buffers of
// disjoint intervals share a slot when one's size is provably at least the other's, so offsets are affine in the
// symbols.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/extent.h"

namespace quern::lir {

struct Lifetime {
  int first = 0, last = 0;  // both included
  Extent bytes;
};

struct ArenaLayout {
  std::vector<Extent> offsets;  // one a lifetime, multiples of 64
  Extent bytes;
};

ArenaLayout PlaceArena(std::span<const Lifetime> lifetimes, const SymbolRanges& ranges);

// `bytes` or a little more: a multiple of 64 for all values of the symbols.
Extent RoundUp64(const Extent& bytes);

}  // namespace quern::lir
