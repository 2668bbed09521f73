// A sequence in chunks of tokens, for the forms of recurrences that are products (GatedDeltaNet, Mamba2).
#pragma once

#include <vector>

#include "ir/composite.h"

namespace quern::ir {

class Chunks {
 public:
  // Of sequences [B, S, ..]; `size` tokens each. The last chunk is filled up with zeros.
  Chunks(Expansion& e, Extent batch, Extent length, int64_t size)
      : e_(e), batch_(std::move(batch)), length_(std::move(length)), size_(size), count_(length_.CeilDividedBy(size)) {}

  const Extent& size() const { return size_; }
  const Extent& count() const { return count_; }
  // x [B, S, ..] as [chunks, B, heads.., C, ..], where `inside` are its extents behind S, of which the first `heads`
  // then stand before the tokens of the chunk.
  Value Split(Value x, std::vector<Extent> inside, size_t heads) const;
  // [chunks, B, G, R, C, m] as [B, S, G R, m].
  Value Joined(Value x) const;

 private:
  Expansion& e_;
  Extent batch_, length_, size_, count_;
};

}  // namespace quern::ir
