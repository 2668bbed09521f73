// What passes and blocks know of products: which nodes are some, and which dtypes meet in one.
#pragma once

#include <optional>
#include <string>

#include "base/dtype.h"
#include "ir/identity.h"

namespace quern::ir {

// A matrix product of operand 0 and the weight or tensor that is operand 1.
bool IsProduct(const Node& node);
// Whether operand 1 of a product lies as rows of K.
bool ReadsRows(const Node& product);
// The product of `a` and `rows`, [.., N, K].
StatusOr<Value> MakeProductOfRows(const MakeNode& make, Value a, Value rows);

// Whether a MatMul takes these two: halves and block formats are weights of f32 activations, else both are alike.
bool Multiplies(DType activation, DType weight);
// "f32, f16, bf16 or a block format": the weights that go with these activations, for errors.
std::string WeightsOf(DType activation);
// The int8 format that f32 activations are quantised to beside weights of this format; none where they stay f32.
std::optional<DType> ActivationFormat(DType weight);

}  // namespace quern::ir
