// A graph with something changed: another op in a place, other operands, attributes, sizes or dtypes, a node more. What
// fuzzing by coverage makes of graphs, where changed bytes of their text would seldom be a graph.
//
//   %2 = Add(%0, %1) : f32[S, 37]    becomes    %2 = Sub(%0, %0) : f32[S, 37]
#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace quern::testing {

// Deterministic. The result verifies; it is `from` where nothing that was tried fits. Nodes that no longer fit what is
// above them go, and with them what needs them.
ir::Graph MutateGraph(const ir::Graph& from, uint64_t seed);

}  // namespace quern::testing
