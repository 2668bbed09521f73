// TensorType: element type and extents of a MIR value.
//
// Layout is no part of it: a block-format parameter lies as in its file (rows of blocks), an intermediate of q8_0 or
// q8_K is planar, everything else is dense and row-major.
#pragma once

#include <span>
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

// Dimensions of a tensor at most, and terms that the product of their extents may come to.
inline constexpr size_t kMostDims = 8;
inline constexpr size_t kMostTerms = 256, kMostFactors = 16;
// Error: more than that; text from outside would otherwise take memory exponential in its length.
Status CheckExtents(std::span<const Extent> extents);

enum class SizeRelation : uint8_t { kEqual, kAtLeast };

// What an op needs of sizes that are known at run time only: left == right, or left >= right. Inference records it; it
// is checked whenever symbols are bound.
struct ExtentConstraint {
  Extent left, right;
  SizeRelation relation = SizeRelation::kEqual;

  Extent difference() const { return left - right; }
  // Whether it holds where the difference has that value.
  bool Holds(int64_t difference) const { return relation == SizeRelation::kEqual ? difference == 0 : difference >= 0; }
  // Whether it is proved for all sizes in `ranges`, or disproved for all.
  bool Always(const SymbolRanges& ranges) const;
  bool Never(const SymbolRanges& ranges) const;
  // "S == T", "64 >= PAST_SEQ + SEQ".
  std::string ToString() const;
  bool operator==(const ExtentConstraint&) const = default;
};

// Appends what `constraints` lacks of `more`, without those that hold for any sizes.
void AddConstraints(std::vector<ExtentConstraint>& constraints, const std::vector<ExtentConstraint>& more);

// Right-aligned broadcast of two extents: equal stay, 1 stretches. A symbol against another number becomes the number
// and is recorded in `constraints`; two different constants are an error.
StatusOr<std::vector<Extent>> BroadcastDims(const std::vector<Extent>& a, const std::vector<Extent>& b,
                                            std::vector<ExtentConstraint>* constraints);

}  // namespace quern::ir
