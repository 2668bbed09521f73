// What reductions over axes have in common: the attributes `axes` and `keep_dim`, the type that is left, and references
// of whole lines.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/op.h"

namespace quern::ir {

// By dimension: whether it is one of `axes`.
std::vector<bool> ReducedAxes(const Attributes& attributes, size_t rank);
// `axes` and `keep_dim`.
std::vector<AttrDef> ReductionAttributes();
// Operand 0 without its reduced axes, or with extents of 1 there; errors of axes that are none, or named twice.
StatusOr<std::vector<TensorType>> InferReduced(const InferContext& context);

// Calls `add` for every element of operand 0: (its position in the result, its position in the operand).
void ForEachTerm(const RefContext& context, const std::function<void(int64_t at, int64_t from)>& add);
// Writes result 0, each element from the terms of which it is made.
void ReduceFloats(RefContext& context, const std::function<double(std::span<const double> terms)>& reduce);
void ReduceIntegers(RefContext& context, const std::function<Wide(std::span<const Wide> terms)>& reduce);
// Writes magnitudes: those are not rounded.
void ReduceMagnitudes(RefContext& context, const std::function<double(std::span<const double> terms)>& reduce);

}  // namespace quern::ir
