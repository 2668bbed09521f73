// Products of bytes that are bytes again: what QMatMul and QConv have in common.
//
//   y = sat(round(mult (bias + sum of (x - x_zp) (w - w_zp))) + out_zp), half to even; the sum wraps in i32
#pragma once

#include <vector>

#include "ir/composite.h"
#include "ir/op.h"

namespace quern::ir {

// x_zp, w_zp, out_zp and mult, behind `others`; and the operands x, w, bias and mult, of these shapes.
std::vector<AttrDef> RequantiseAttributes(std::vector<AttrDef> others = {});
std::vector<OperandDef> RequantiseOperands(const char* x, const char* w, const char* n);
// That the dtypes and zero points are of bytes, and bias and mult of `n` elements.
Status CheckRequantised(const InferContext& context, const Extent& n);
// A sum over an axis, which stays, of bytes as i32.
Value Sum32(Expansion& e, Value bytes, int64_t axis);
// The bytes that the sum becomes; bias and mult, operands from 2 on, have extents `beside`, which broadcast to it.
Value Requantised(Expansion& e, const Node& node, Value sum, std::span<const Value> inputs,
                  const std::vector<Extent>& beside);
// The same of a sum that is exact in i32, for channel n.
int64_t Requantised(const RefContext& context, int64_t sum, int64_t n);

}  // namespace quern::ir
