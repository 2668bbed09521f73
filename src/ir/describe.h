// What is in a graph, in numbers: what `quern inspect` says of one.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace quern::ir {

// Its name and fingerprint, sizes, inputs, outputs and states with their types, parameters and constants with their
// bytes, and how many nodes there are of each op, bodies included. Outputs go by `names`, or by their numbers.
std::string Describe(const Graph& graph, const std::vector<std::string>& names = {});

}  // namespace quern::ir
