// Pieces of graph text, for those that print parts of graphs.
#pragma once

#include <string>

#include "ir/graph.h"

namespace quern::ir {

// "%3", "%4.1" of a node with several results.
std::string RefText(const Graph& graph, Value value);
// "%3 = MatMul(%1, %2) {transpose_b = true}", "%4:2 = ..": a node but for its data, types, origin and bodies.
std::string HeadText(const Graph& graph, int node);
// " : f32[7, 5], i64[7, 5]".
std::string TypesText(const Node& node);
// " sym A in 1..3, B in 0.."; empty where there is none.
std::string SymbolsText(const SymbolRanges& symbols);

}  // namespace quern::ir
