// What CumSum and CumProd have in common.
//
//   y[i] = x[0] + ... + x[i]; exclusive: without x[i]; reverse: x[i] + ... + x[n - 1]
#pragma once

#include "ir/op.h"

namespace quern::ir {

// Of sums or products, which are all that this is made for. The OpDef lives forever.
const OpDef* Cumulative(const char* name, const char* doc, kir::ReduceOp reduce, const char* onnx);

}  // namespace quern::ir
