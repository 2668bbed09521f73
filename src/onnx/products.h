// What several themes make of products.
#pragma once

#include "onnx/importer.h"

namespace quern::onnx {

// As numpy's matmul: vectors are a row on the left and a column on the right.
Value MatMulOf(Call& c, Value a, Value b);

// The windows of a convolution or pooling of `spatial` dimensions.
struct Windows {
  Ints kernel, strides, pads, dilations;  // pads: before each dimension, then after each

  ir::Attributes Attributes() const { return {{"strides", strides}, {"pads", pads}, {"dilations", dilations}}; }
};
// From attributes: kernel_shape unless `kernel` is given, strides, pads, dilations and auto_pad.
Windows WindowsOf(Call& c, Value x, Ints kernel, bool transposed = false);

void MatMulNBits(Call& c);
void GatherBlockQuantized(Call& c);

}  // namespace quern::onnx
