// What values of a graph are called outside of it: in files of ranges and of quantisation.
#pragma once

#include <map>
#include <string>

#include "ir/graph.h"

namespace quern::ir {

// A name for each value of the graph, bodies apart, each another: that of an Input or Param; the label of the node that
// makes it, with "#2" and on where earlier nodes have it too; else the number of the node, "%4". ".1" and on are the
// further results of a node.
std::map<Value, std::string> ValueNames(const Graph& graph);

// The quantisation map of a graph, which verifies, by value: for who changes names of values, or does not look at them.
std::map<Value, Scheme> SchemesOf(const Graph& graph);
// The map of a graph that has these.
QuantisationMap MapOf(const Graph& graph, const std::map<Value, Scheme>& schemes);

}  // namespace quern::ir
