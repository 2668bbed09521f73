// What is in a graph, in numbers: what `quern inspect` says of one.
#pragma once

#include <string>

#include "ir/graph.h"

namespace quern::ir {

// Its name and fingerprint, sizes, inputs, outputs and states with their types, parameters and constants with their
// bytes, and how many nodes there are of each op, bodies included.
std::string Describe(const Graph& graph);

}  // namespace quern::ir
