// Symbols replaced by extents all over a graph: what passes over sizes share.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "ir/graph.h"

namespace quern::opt {

using Substitution = std::map<std::string, Extent, std::less<>>;

Extent Substitute(Extent extent, const Substitution& values);
// What is left of the constraints with extents in place of the symbols. Error: kSizeConflict where one holds for no
// sizes in `ranges`.
StatusOr<std::vector<ir::ExtentConstraint>> Substitute(const std::vector<ir::ExtentConstraint>& constraints,
                                                       const Substitution& values, const SymbolRanges& ranges);

// A copy of the graph in which types, attributes, constraints and the bodies of regions have the extents in place of
// the symbols, and `change` has been made to the symbols of the graph and of each body. `pass` names the nodes that it
// adds. Error: kSizeConflict where a constraint holds for no sizes any more.
StatusOr<ir::Graph> Substitute(const ir::Graph& graph, const Substitution& values,
                               const std::function<Status(SymbolRanges& symbols)>& change, const char* pass);

}  // namespace quern::opt
