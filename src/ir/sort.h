// What Sort and TopK have in common: one order of values, in which a NaN is the largest, zeros of both signs are equal,
// and of equal ones the first comes first, whichever way they run.
#pragma once

#include "ir/op.h"

namespace quern::ir {

// Lines along another axis than the last are transposed, ordered and transposed back.
bool RunsAlongOther(const Node& node);
StatusOr<std::vector<Value>> OrderedAlongLast(Graph& graph, const Node& node, std::span<const Value> inputs,
                                              int origin);
// The first of each line in order, as many as results have.
Status ReferenceOrder(RefContext& context, bool descending);

}  // namespace quern::ir
