// A region as a graph of its own, and the way back.
#pragma once

#include "base/status.h"
#include "ir/graph.h"
#include "lir/plan.h"

namespace quern::check {

// The body of Region node `region` of a fused graph as a self-standing graph, whose leaves are what the region reads:
// Params where the region reads parameters, constants, or what was computed from those alone, Inputs elsewhere; called
// as in the fused graph where they are leaves there. State that the region writes in place is donated. Leaf i stands
// for operand i. Precondition: `plan` was built from `fused`, or a graph that it is a body of; `values` is where its
// values lie.
StatusOr<ir::Graph> RegionGraph(const ir::Graph& fused, int region, const lir::Plan& plan,
                                const std::vector<std::vector<lir::Argument>>& values);

// The ops of every Region in the place of it.
StatusOr<ir::Graph> InlineRegions(const ir::Graph& graph);

}  // namespace quern::check
