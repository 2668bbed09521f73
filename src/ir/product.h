// Which dtypes meet in a product: the rules of MatMul, by which blocks check their weights too.
#pragma once

#include <optional>
#include <string>

#include "base/dtype.h"

namespace quern::ir {

// Whether a MatMul takes these two: halves and block formats are weights of f32 activations, else both are alike.
bool Multiplies(DType activation, DType weight);
// "f32, f16, bf16 or a block format": the weights that go with these activations, for errors.
std::string WeightsOf(DType activation);
// The int8 format that f32 activations are quantised to beside weights of this format; none where they stay f32.
std::optional<DType> ActivationFormat(DType weight);

}  // namespace quern::ir
