// Integers for floats, by a scale: what QuantizeLinear and DequantizeLinear have in common. A scale stands for all of
// the tensor, for each index along an axis, or for each run of `block` elements along it, the last of which may be
// short.
#pragma once

#include "ir/composite.h"
#include "ir/op.h"

namespace quern::ir {

// `axis` and `block`.
std::vector<AttrDef> ScaleAttributes();
// The scale (operand 1) and a zero point (operand 2, where there is one) against x (operand 0).
Status CheckScales(const InferContext& context);
// The scale or zero point `value` with an element for each of x that it is for, or that broadcasts to them.
Value ScaleOf(Expansion& e, Value value, const TensorType& x, const Attributes& attributes);
// The quotient as kernels have it, which a rounding follows: in f64, or in f32 of everything else.
double QuotientIn(DType dtype, double x, double scale);
// Where the scale of the element of x at `index` lies.
int64_t ScaleAt(const RefTensor& scale, const std::vector<int64_t>& index, const Attributes& attributes);

}  // namespace quern::ir
