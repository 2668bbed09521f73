// Where an operand of an attention lies: [batch, position, head, column] of a value in memory, which it may be a part
// of and in another order there.
//
//   %1 = Slice(%0) {axis = 2, start = 768, stop = 1536} : f32[2, S, 768]     %0 : f32[2, S, 2304], three times 12 heads
//   %2 = Reshape(%1) .. : f32[2, S, 12, 64]     %3 = Transpose(%2) {perm = [0, 2, 1, 3]} : f32[2, 12, S, 64]
// is read as x0[b, s, 12 + h, :], x0 : f32[2, S, 36, 64]
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "family/region_view.h"
#include "ir/attention.h"
#include "ir/strides.h"
#include "kir/build.h"

namespace quern::codegen {

class AttentionPlace {
 public:
  enum Axis : uint8_t { kBatch, kPosition, kHead, kAxes };
  // What of each axis, by Axis.
  using Slices = std::array<kir::SliceDim, kAxes>;
  using Point = std::array<kir::ExprRef, kAxes>;

  // Of operand 0, 1 or 2 (q, k, v) of node `root`. Nothing where its value is computed, or its elements have no such
  // order.
  static std::optional<AttentionPlace> Find(const family::RegionView& view, int root, int operand);

  ir::Value source;          // that lies in memory
  std::vector<Extent> dims;  // as which it is declared

  kir::Slice At(const std::string& buffer, const Slices& of) const;
  kir::Index ElementAt(const Point& at, const kir::ExprRef& column) const;

 private:
  // Fits the dims to axes whose steps are in this order, the longest first. `whole_positions`: there are no others.
  bool Fit(const ir::Strides& strides, const Extent& elements, const std::array<Axis, kAxes>& order,
           bool whole_positions, const SymbolRanges& ranges);

  std::array<int, kAxes> dim_ = {};        // of the buffer, along which the axis goes
  std::array<int64_t, kAxes> first_ = {};  // index there of what is first
  int64_t first_column_ = 0, columns_ = 0;
};

}  // namespace quern::codegen
