// The gradients of Conv: in x and in w, whose extents are an attribute, for strides lose them.
#pragma once

#include "ir/op.h"
#include "ir/window.h"

namespace quern::ir {

// `strides`, `pads`, `dilations`, `groups` and `dims`.
std::vector<AttrDef> ConvBackwardAttributes(const char* of);
// What Conv makes of x and w is dy, operand 1 of the op: or an error about that operand.
Status CheckConvBackward(const InferContext& context, const TensorType& x, const TensorType& w);
// Calls `visit` with the places in x, w and dy of every product that the convolution has.
void ForEachProduct(const Attributes& attributes, const std::vector<int64_t>& x, const std::vector<int64_t>& w,
                    const std::vector<int64_t>& y, const std::function<void(int64_t, int64_t, int64_t)>& visit);

}  // namespace quern::ir
