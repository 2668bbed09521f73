// Where the maxima of a Pool stand: what MaxPoolIndices and MaxPoolBackward have in common.
#pragma once

#include <functional>

#include "ir/composite.h"

namespace quern::ir {

// What both infer first: the type of the Pool of maxima of operand 0 with the node's attributes.
StatusOr<TensorType> InferMaxPool(const InferContext& context);
// The attributes of both: kernel, ceil, and those of windows.
std::vector<AttrDef> MaxPoolAttributes();

// Of x [N, C, s..] and `places` o.., i64 [N C, o..]: the number in s.., row-major, of the first largest element of each
// window; a NaN is larger than all, and padding is none.
Value FirstLargest(Expansion& e, const Attributes& attributes, Value x, std::span<const Extent> places);
// The same of a reference: calls `take` with the position of each place of the result `y`, and that of the element.
void ForEachFirstLargest(const Attributes& attributes, const RefTensor& x, std::span<const int64_t> y,
                         const std::function<void(int64_t place, int64_t element)>& take);

}  // namespace quern::ir
