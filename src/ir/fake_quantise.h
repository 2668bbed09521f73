// Floats as a few levels of them: what FakeQuantize and its relatives have in common. Levels are -n to n times a scale,
// n = 127, 7 or 1 for 8, 4 or 2 bits; a scale is for all of the tensor, or for each index along an axis. A scale of
// less than 1e-12 is 1e-12.
#pragma once

#include <vector>

#include "ir/composite.h"
#include "ir/op.h"
#include "ir/shape.h"

namespace quern::ir {

// x and a scale of it; with `dy`, what of the result is asked for too.
std::vector<OperandDef> LevelOperands(bool dy);
// `bits` and `axis`.
std::vector<AttrDef> LevelAttributes(std::vector<AttrDef> others = {});
// The largest level.
double LevelsOf(const Attributes& attributes);
// The dimensions of a scale of x; and the same with ones for the other dimensions.
std::vector<Extent> ScaleDims(const TensorType& x, const Attributes& attributes);
std::vector<Extent> ScaleBesides(const TensorType& x, const Attributes& attributes);
// The axes that share a scale.
std::vector<int64_t> SharedAxes(size_t rank, const Attributes& attributes);
// bits and axis; that operand `scale` is one of x, in f32, or in f64 of f64; and that operand `dy`, where it is not -1,
// has the extents of x.
Status CheckLevels(const InferContext& context, int scale, int dy);

// A scale as it broadcasts to x, and no less than it may be.
Value UsableScale(Expansion& e, Value scale, const TensorType& x, const Attributes& attributes);
double UsableScale(double scale);
// clamp(round(x / scale), -n, n) scale.
Value Levelled(Expansion& e, Value x, Value scale, const Attributes& attributes);
double Levelled(DType dtype, double x, double scale, double levels);
// Calls `visit` with the place of each element of x, and that of its scale.
template <typename Visit>
void ForEachScaled(const RefTensor& x, const Attributes& attributes, const Visit& visit) {
  const std::vector<int64_t>& axes = attributes.Ints("axis");
  std::vector<int64_t> index(x.dims.size());
  const int64_t elements = x.elements(), axis = axes.empty() ? 0 : FromStart(axes[0], index.size());
  for (int64_t at = 0; at < elements; ++at, NextIndex(x.dims, index)) visit(at, axes.empty() ? 0 : index[axis]);
}

}  // namespace quern::ir
