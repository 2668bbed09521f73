// Pieces of graph text, for those that print parts of graphs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace quern::ir {

// "%3", "%4.1" of a node with several results.
std::string RefText(const Graph& graph, Value value);
// "%3 = MatMul(%1, %2) {transpose_b = true}", "%4:2 = ..": a node but for its data, types, origin and bodies.
std::string HeadText(const Graph& graph, int node);
// " {axis = 1, block = 0}"; empty where there are none.
std::string AttributesText(const Attributes& attributes);
// " : f32[7, 5], i64[7, 5]".
std::string TypesText(const Node& node);
// " sym A in 1..3, B in 0.."; empty where there is none.
std::string SymbolsText(const SymbolRanges& symbols);
// " as "y"" of an output with such a name; empty where it goes by its number.
std::string AsText(const std::vector<std::string>& names, size_t output);

// A name as readers take it back: as it is where it is a word of letters, digits and "_.-/", else quoted.
std::string NameText(std::string_view name);
// "quantise "x" {dtype = u8, ..}", and a line of each.
std::string SchemeText(const std::string& name, const Scheme& scheme);
std::string QuantisationText(const QuantisationMap& map, int indent);
// " hex 00ff", of no bytes " hex -".
std::string DataText(const std::vector<uint8_t>& data);
// The graph, its first line not indented and its last one without an end.
std::string GraphText(const Graph& graph, int indent);

}  // namespace quern::ir
