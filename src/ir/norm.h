// The norms over the last axis: operands x, gamma and, where there is one, beta, of the row's extent.
#pragma once

#include <vector>

#include "ir/composite.h"
#include "ir/op.h"

namespace quern::ir {

// Operands from `affine` on (gamma, beta) against the last extent of operand 0, which must have one.
Status CheckNorm(const InferContext& context, int affine);

// normal * gamma + beta, in the dtype that Wide gives: the end of every norm. `affine`: gamma, and beta where there
// is one.
Value ScaleAndShift(Expansion& e, Value normal, std::span<const Value> affine);

// y = (x - mean) / sqrt(mean((x - mean)^2) + eps) * gamma + beta, row by row; without `centred` the mean counts as 0.
// `affine` as above.
void ReferenceNorm(const RefTensor& x, std::span<const RefTensor* const> affine, bool centred, double eps,
                   RefTensor& y);
// The magnitude of that: the sizes of what is added and subtracted.
void MagnitudeOfNorm(const RefTensor& x, std::span<const RefTensor* const> affine, bool centred, double eps,
                     RefTensor& y);

}  // namespace quern::ir
