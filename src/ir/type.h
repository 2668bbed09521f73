// TensorType: element type and extents of a MIR value.
//
// Layout is no part of it: a block-format parameter lies as in its file (rows of blocks), an intermediate of q8_0 or
// q8_K is planar, everything else is dense and row-major.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/extent.h"

namespace quern::ir {

// "[SEQ, 256]".
std::string ToString(const std::vector<Extent>& dims);

struct TensorType {
  DType dtype = DType::kF32;
  std::vector<Extent> dims;  // outermost first; rank 0 is one element

  int rank() const { return static_cast<int>(dims.size()); }
  Extent elements() const;
  bool operator==(const TensorType&) const = default;
  // "f32[SEQ, 256]"; "f32[]" for rank 0. Parse reads it back.
  std::string ToString() const;
  static StatusOr<TensorType> Parse(std::string_view text);
};

// Right-aligned broadcast of two extents: equal stay, 1 stretches. A symbol against another number becomes the number
// and is recorded in `constraints` (checked when symbols are bound); two different constants are an error.
struct ExtentConstraint {
  Extent left, right;
  bool operator==(const ExtentConstraint&) const = default;
};
StatusOr<std::vector<Extent>> BroadcastDims(const std::vector<Extent>& a, const std::vector<Extent>& b,
                                            std::vector<ExtentConstraint>* constraints);

}  // namespace quern::ir
