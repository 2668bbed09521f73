// The nodes of a product whose sums have few terms (IsShortSum): columns beside rows.
#pragma once

#include "ir/identity.h"

namespace quern::ir {

// a [.., M, K] by b, [.., N, K] where `rows`, else [.., K, N], both of `graph`, to which `make` adds; K is known. Sums
// start with `zero`, a constant of no dimensions.
StatusOr<Value> MakeShortSum(const MakeNode& make, const Graph& graph, Value a, Value b, bool rows, Value zero);

}  // namespace quern::ir
