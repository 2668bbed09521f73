// What the passes share that put expansions in the place of nodes.
#pragma once

#include "base/status.h"
#include "ir/graph.h"

namespace quern::opt {

// Expansions in the place of all nodes of which `which` is true, here and in bodies, until none is left: an expansion
// may hold such nodes itself. `pass` names the nodes that are made; `between` is what becomes of the graph before each
// walk, or null.
StatusOr<ir::Graph> ExpandNodes(const ir::Graph& graph, const char* pass, bool (*which)(const ir::Node& node),
                                StatusOr<ir::Graph> (*between)(const ir::Graph& graph) = nullptr);

// Composite ops that own bodies replaced by what they stand for (expand_bodies.cc).
StatusOr<ir::Graph> ExpandBodies(const ir::Graph& graph);

}  // namespace quern::opt
