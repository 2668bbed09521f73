// Values of Constant nodes.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace quern::opt {

// The value of a Constant of one element, of 64-bit integers the nearest double; nullopt for any other node.
std::optional<double> ScalarConstant(const ir::Graph& graph, ir::Value value);

}  // namespace quern::opt
