// Norms that several themes are made of.
#pragma once

#include <functional>

#include "onnx/importer.h"

namespace quern::onnx {

// gamma [C] or beta as [C, 1, ..], to broadcast over [N, C, ..].
Value PerChannel(Call& c, Value vector, Value x);

// The sum of a token's rows of three tables, operands 2 (of words), 3 (of positions) and 4 (of segments, operand 1,
// where both are there), its norm by operands 5 and 6, and how many tokens each sequence has by operand 7. `positions`:
// the operand that numbers them, or -1. `floats`: what was taken from an operand, as floats.
void EmbedAndNormalise(Call& c, int positions, const std::function<Value(int operand, Value taken)>& floats);

}  // namespace quern::onnx
