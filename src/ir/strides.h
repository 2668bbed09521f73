// Where the elements of a value lie in the memory of another: what Slices, Transposes and Reshapes do without moving
// any. An op says it of its result in OpDef::strides.
#pragma once

#include <optional>
#include <vector>

#include "base/extent.h"

namespace quern::ir {

// Element i lies at offset + sum of i[d] * steps[d], in elements.
struct Strides {
  std::vector<Extent> dims, steps;
  Extent offset;

  // In row-major order without gaps.
  static Strides Dense(std::vector<Extent> dims);
  // Whether they are, from the offset on.
  bool IsDense() const;
  // The same elements in row-major order with other extents; nullopt where a dimension would have no one step.
  std::optional<Strides> Reshaped(const std::vector<Extent>& to) const;
};

}  // namespace quern::ir
