// How the k of a product is cut where panels of all of it would not stay in a cache: loops over its outer axes, one
// axis that goes by steps of a constant length, and whole inner axes.
//
//   k of 4096:        for k0 in 0..4096 by 512 { .. }
//   k of [64, 3, 3]:  for k0 in 0..64 by 56 { .. }
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/extent.h"
#include "kir/build.h"

namespace quern::codegen {

class DepthBlocks {
 public:
  // Elements of k: all of them are one block up to `whole`, and a block has at most `block`.
  struct Limits {
    int64_t whole, block;
  };
  // `k`: its axes, outermost first.
  DepthBlocks(std::vector<Extent> k, Limits limits);

  // Whether all of k is one block.
  bool whole() const { return cut_ == k_.size(); }
  // Elements of a block at most; constant but where nothing is cut.
  Extent Most() const { return inner_ * Extent(step_); }
  // Whether every block, the last too, has a multiple of `count` elements.
  bool AreMultiplesOf(int64_t count) const;
  // The elements of k that a part of it begins at multiples of; 0 where only all of k can be gone over.
  int64_t Step() const { return !whole() && cut_ == 0 ? step_ * inner_.constant() : 0; }
  // Of a part, what Over counts its first and its end in: blocks, or of the axis that is cut where the last is shorter.
  int64_t Unit() const { return HasWholeBlocks() ? Step() : inner_.constant(); }
  // The loops over blocks, called k0, k1, .. by axis; nothing is added where all of k is one. Where there is a Step,
  // of the part [first, end) alone, in Units, if it is given.
  kir::Block Over(kir::Block body, const kir::ExprRef& first = nullptr, const kir::ExprRef& end = nullptr) const;
  // Of the block that those loops are at: its first k, and how many.
  kir::ExprRef First() const;
  kir::ExprRef Count() const;

  // The elements of that block: loops over them, their index on the axes of k, and which of the block they are.
  struct Elements {
    struct Loop {
      std::string name;
      kir::ExprRef low, high;
    };
    std::vector<Loop> loops;
    kir::Index at;
    kir::ExprRef k;

    // Loops [first, end) around `body`.
    kir::Block Around(size_t first, size_t end, kir::Block body) const;
  };
  Elements Inside() const;

 private:
  bool HasWholeBlocks() const;
  const std::vector<Extent> k_;
  size_t cut_;  // the axis that goes by `step_`; k_.size(): none
  int64_t step_ = 1;
  Extent inner_ = Extent(1);  // elements of the axes behind it
};

}  // namespace quern::codegen
