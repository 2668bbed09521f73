// What differs between two graphs, for people who changed one and look at what came of it.
#pragma once

#include <string>

#include "ir/graph.h"

namespace quern::ir {

// What counts.
struct DiffOptions {
  bool names = true;      // of Inputs, Params and outputs
  bool constants = true;  // their bytes
  bool origins = false;   // labels
};

// Lines of nodes that only `a` has ("- %3 = ..."), that only `b` has ("+ %4 = ..."), and that both have over other
// operands ("~ %5 = ... was ..."), in order; of sizes, outputs, donations and schemes that differ; empty where nothing
// does.
// Nodes are matched by op, attributes, data, result types and bodies, in order; names of graphs count for nothing. Of
// the same graphs in any run the same text.
std::string Diff(const Graph& a, const Graph& b, const DiffOptions& options = {});

}  // namespace quern::ir
