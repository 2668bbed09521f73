// What passes ask of ops that pairs of QuantizeLinear and DequantizeLinear move across: those whose results are
// elements of their operands, or the larger or smaller of some, which a scale above 0 leaves the same ones.
#pragma once

#include "ir/op.h"

namespace quern::ir {

// The result is elements of operand 0, each as it is.
inline bool IsView(const Node& node) {
  return node.op->kind == OpKind::kIndex && node.op->strides != nullptr && node.inputs.size() == 1;
}
// The operands one after another.
bool IsConcat(const Node& node);
// The largest element of each window of operand 0.
bool IsMaxPool(const Node& node);
// max(x, 0); min(max(x, low), high).
bool IsRelu(const Node& node);
bool IsClamp(const Node& node);

}  // namespace quern::ir
