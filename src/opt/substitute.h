// Symbols replaced by extents all over a graph: what passes over sizes share.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "ir/graph.h"

namespace quern::opt {

using Substitution = std::map<std::string, Extent, std::less<>>;

// A copy of the graph in which types, attributes, constraints and the bodies of regions have the extents in place of
// the symbols, and `change` has been made to the symbols of the graph and of each body. `pass` names the nodes that it
// adds. Error: kSizeConflict where a constraint holds for no sizes any more.
StatusOr<ir::Graph> Substitute(const ir::Graph& graph, const Substitution& values,
                               const std::function<Status(SymbolRanges& symbols)>& change, const char* pass);

}  // namespace quern::opt
