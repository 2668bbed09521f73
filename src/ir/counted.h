// Sizes that only data decide. `Counted` cuts a tensor of its upper bound to as many elements as a count says, and that
// many is a symbol of the graph, which no run is given: each run finds it.
//
//   graph g sym N in 0..37, S in 1..8 {
//     ...
//     %3:2 = Compress(%1, %2) {axis = 0} : f32[37, S], i64[]
//     %4 = Counted(%3.0, %3.1) {axis = 0, size = <N>} : f32[N, S]
//     %5 = Exp(%4) : f32[N, S]
//
// A symbol may be that of several nodes, of one count. Nothing before the first of them names it, so the order of nodes
// is one in which every size is known when it is needed, and passes keep to it.
//
// What the body of a loop or branch finds, each trip finds anew. The symbol is that body's alone: bodies within it may
// name it, nothing outside may, so what the body returns has sizes that are known there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace quern::ir {

bool IsCounted(const Node& node);
// The symbol of such a node.
const std::string& CountedSymbol(const Node& node);

// The symbols that nodes of a graph find, each with the most that it may be: a size in symbols that are given.
using CountedSizes = std::map<std::string, Extent, std::less<>>;
CountedSizes CountedSizesOf(const Graph& graph);
// Those that its bodies find too.
CountedSizes AllCountedSizes(const Graph& graph);
// Of a graph, not of its bodies: for each symbol the first node that has it.
std::map<std::string, int, std::less<>> CountingNodes(const Graph& graph);

// A size that is at least as large, for any counts, and names none of them.
Extent AtMost(const Extent& extent, const CountedSizes& counted);

// The symbols of `graph` that a run is given.
SymbolRanges GivenSymbols(const Graph& graph);

// Error, where there is one: of what runs plans elsewhere than in the process that has planned them.
Status RefuseCounted(const CountedSizes& counted);

// Piece of Verify: every symbol is found before anything names it, from one count, and what a body finds is its own.
Status CheckCounted(const Graph& graph);

}  // namespace quern::ir
