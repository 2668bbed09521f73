// The norms. Those over the dimensions from an axis on have operands x, gamma and, where there is one, beta, of those
// extents; those of channels have gamma and beta by dimension 1.
#pragma once

#include <functional>
#include <vector>

#include "ir/composite.h"
#include "ir/op.h"

namespace quern::ir {

// The attribute `axis` of norms, the first that is normalised, and the axes that are.
AttrDef NormAxisAttribute();
std::vector<int64_t> NormAxes(int64_t axis, size_t rank);
// Operands from `affine` on (gamma, beta) against the extents of operand 0 from `axis` on.
Status CheckNorm(const InferContext& context, int affine, int64_t axis = -1);

// normal * gamma + beta, in the dtype that Wide gives: the end of every norm. `affine`: gamma, and beta where there
// is one.
Value ScaleAndShift(Expansion& e, Value normal, std::span<const Value> affine);

// (x - mean) / sqrt(variance + eps) over `axes`: the biased variance, of what is left when the mean has been taken off.
// x as Wide gives it.
Value Normal(Expansion& e, Value x, const std::vector<int64_t>& axes, double eps);

// Operands from `affine` on against dimension 1 of operand 0, which has `least` dimensions or more.
Status CheckChannels(const InferContext& context, int affine, int least);
// [C] as it broadcasts against [N, C, ..] of `rank` dimensions; in the dtype that Wide gives.
Value ByChannel(Expansion& e, Value value, int rank);
// y = (x - mean) / sqrt(variance + eps) * gamma[channel] + beta[channel] over the elements of one group, which is what
// `group` makes of an index; operands are x, gamma, beta.
using GroupOf = std::function<int64_t(std::span<const int64_t> index)>;
void ReferenceChannelNorm(RefContext& context, const GroupOf& group);
// The magnitude of that.
void MagnitudeOfChannelNorm(RefContext& context, const GroupOf& group);

// y = (x - mean) / sqrt(mean((x - mean)^2) + eps) * gamma + beta, over the dimensions from `axis` on; without `centred`
// the mean counts as 0. `affine` as above.
void ReferenceNorm(const RefTensor& x, std::span<const RefTensor* const> affine, bool centred, double eps, RefTensor& y,
                   int64_t axis = -1);
// The magnitude of that: the sizes of what is added and subtracted.
void MagnitudeOfNorm(const RefTensor& x, std::span<const RefTensor* const> affine, bool centred, double eps,
                     RefTensor& y, int64_t axis = -1);

}  // namespace quern::ir
