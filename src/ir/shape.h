// Helpers of the ops that move elements: axes, attribute extents, index arithmetic of reshapes.
#pragma once

#include <vector>

#include "ir/op.h"

namespace quern::ir {

// `axis` counted from the end when negative, or an error that names the op.
StatusOr<int> NormalAxis(const char* op, int64_t axis, int rank);

// The index into a tensor of extents `source` of the element that has `index` in the same elements laid out with
// extents `result`. Groups of dimensions with equal products are converted one by one, so a leading symbol stays
// untouched.
kir::Index ReshapeIndex(const std::vector<Extent>& result, const std::vector<Extent>& source, const kir::Index& index);

// The i64 `id` as an index below `size`: a negative one counts from the end, one out of range is clamped.
kir::ExprRef IndexInside(const kir::ExprRef& id, const kir::ExprRef& size);

// An OpDef that lives forever, from the fields given.
inline const OpDef* Make(OpDef op) { return new OpDef(std::move(op)); }

// Sizes of `dims` under `binding`; the graph interpreter has checked that all symbols are bound.
std::vector<int64_t> SizesOf(const std::vector<Extent>& dims, const Binding& binding);

}  // namespace quern::ir
