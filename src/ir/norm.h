// The norms over the last axis: operands x, gamma and, where there is one, beta, of the row's extent.
#pragma once

#include <vector>

#include "ir/composite.h"
#include "ir/op.h"

namespace quern::ir {

// The result has x's type. Errors name `op`, and gamma or beta of other extents.
StatusOr<std::vector<TensorType>> InferNorm(const char* op, const InferContext& context);

// normal * gamma + beta: the end of every norm. `affine`: gamma, and beta where there is one.
Value ScaleAndShift(Expansion& e, Value normal, std::span<const Value> affine);

// y = (x - mean) / sqrt(mean((x - mean)^2) + eps) * gamma + beta, row by row; without `centred` the mean counts as 0.
// `affine` as above.
void ReferenceNorm(const RefTensor& x, std::span<const RefTensor* const> affine, bool centred, double eps,
                   RefTensor& y);

}  // namespace quern::ir
