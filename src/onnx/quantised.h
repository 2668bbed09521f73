// Bytes with scales and zero points, for the themes that have them.
#pragma once

#include "onnx/importer.h"

namespace quern::onnx {

// The sums of products of bytes less their zero points, [.., M, N], i32. Zero points are numbers, or [M] of a and [N]
// of b; none where they are absent. `rows`: b is [.., N, K].
Value ByteProduct(Call& c, Value a, std::optional<Value> a_zero, Value b, std::optional<Value> b_zero,
                  bool rows = false);
// A scale and a u8 zero point for all of x and 0, as DynamicQuantizeLinear finds them; the scale of nothing but 0 is 0.
struct DynamicForm {
  Value scale, zero;
  Value divisor;  // the scale, or 1 for 0
};
DynamicForm DynamicFormOf(Call& c, Value x);
// (x - zero) scale, in f32; zero may be absent. Scales are a number or stand along `axis`.
Value Dequantised(Call& c, Value x, Value scale, std::optional<Value> zero, int64_t axis = 1);
// Of operand i, its scale and its zero, which may be absent.
Value DequantisedAt(Call& c, int i);
// The nearest of x / scale + zero, in the dtype of zero.
Value Quantised(Call& c, Value x, Value scale, Value zero);
// The same by the operands `scale` and `scale` + 1; a zero that is absent is 0 of the first operand's dtype.
Value QuantisedBy(Call& c, Value x, int scale);
// The bytes of `scale` times an i32 sum, about `zero`.
Value Requantised(Call& c, Value sum, Value scale, Value zero);
// The operand i, if it is there.
std::optional<Value> Maybe(Call& c, int i);
// [1] as [].
Value One(Call& c, Value value);

}  // namespace quern::onnx
