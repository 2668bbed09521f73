// Regions of a buffer: sets of elements as boxes of index ranges, and how many elements they cover together.
//
//   CoveredElements({{{0, 3}, {0, 64}}, {{2, 5}, {0, 64}}})     // rows 0..2 and 2..4 of 64: 5 * 64
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace quern::kir {

// Indices [low, high) of one dimension.
struct IndexRange {
  int64_t low = 0, high = 0;
  int64_t size() const { return high > low ? high - low : 0; }
};
// One range a dimension; rank 0 is one element.
using Box = std::vector<IndexRange>;

// Elements in at least one of the boxes, which are of one rank.
int64_t CoveredElements(std::span<const Box> boxes);

}  // namespace quern::kir
