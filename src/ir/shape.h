// Helpers of the ops that move elements: axes, attribute extents, index arithmetic of reshapes.
#pragma once

#include <functional>
#include <vector>

#include "ir/op.h"

namespace quern::ir {

// `axis` counted from the start; a negative one counts from the end. Precondition: inference took it.
inline int64_t FromStart(int64_t axis, size_t rank) { return axis < 0 ? axis + static_cast<int64_t>(rank) : axis; }
// The same of an axis of the op's first operand that `attribute` gives, or an error when there is no such axis.
StatusOr<int> AxisOf(const InferContext& context, const char* attribute, int64_t axis);
inline StatusOr<int> AxisOf(const InferContext& context) {
  return AxisOf(context, "axis", context.attributes.Int("axis"));
}

// The index into a tensor of extents `source` of the element that has `index` in the same elements laid out with
// extents `result`. Groups of dimensions with equal products are converted one by one, so a leading symbol stays
// untouched.
kir::Index ReshapeIndex(const std::vector<Extent>& result, const std::vector<Extent>& source, const kir::Index& index);

// The value in f32 where it is of halves: those are stored, never computed with.
kir::ExprRef Widened(const kir::ExprRef& value);

// The i64 `id` as an index below `size`: a negative one counts from the end, one out of range is clamped.
kir::ExprRef IndexInside(const kir::ExprRef& id, const kir::ExprRef& size);

// The i64 `start` of `size` elements, moved so that they lie in `whole`, which has as many.
kir::ExprRef StartInside(const kir::ExprRef& start, const Extent& whole, const Extent& size);

// An OpDef that lives forever, from the fields given.
inline const OpDef* Make(OpDef op) { return new OpDef(std::move(op)); }

// Every element of `y` from `x`: `from` gets the index of one of y, as a start, and makes it that of x.
void MoveElements(const RefTensor& x, RefTensor& y, const std::function<void(std::vector<int64_t>& index)>& from);

// Sizes of `dims` under `binding`; the graph interpreter has checked that all symbols are bound.
std::vector<int64_t> SizesOf(const std::vector<Extent>& dims, const Binding& binding);

}  // namespace quern::ir
