// What lines a region is made of: internal to the family of lines.
//
// All folds and scans of a region run along the same axes of the same elements. What the other axes leave is a line
// each; a value of the region has a line's elements or one for the whole line.
#pragma once

#include <vector>

#include "codegen/kernel_writer.h"
#include "family/axis_space.h"
#include "family/family.h"

namespace quern::codegen {

struct LinesPlan : family::RegionPlan {
  explicit LinesPlan(family::AxisSpace space) : space(std::move(space)) {}

  family::AxisSpace space;      // merged
  std::vector<int> axes;        // in the order of memory
  std::vector<bool> along;      // by axis: lines run along it
  std::vector<int> kept, line;  // axes of either kind, in order
  // By node of the graph: the number of folds that stand one behind the other on the way to it; only of nodes of the
  // region.
  std::vector<int> level;

  bool across() const { return !kept.empty() && axes.back() == kept.back(); }  // memory runs across lines
  bool IsLine(ir::Value value) const;                                          // has every element of every line
  bool IsKept(ir::Value value) const;                                          // has one element a line
  Extent LineElements() const;
  std::vector<Extent> ExtentsOf(const std::vector<int>& axes) const;
};

// What elements of a dtype are folded in.
inline DType FoldedType(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype; }

// Fold or scan: a root of the family.
inline bool IsLineOp(const ir::Node& node) { return node.op->line != nullptr; }

}  // namespace quern::codegen
