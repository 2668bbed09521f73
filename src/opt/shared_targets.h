// What is written in place while others read it: before regions are formed, and while they are put in order.
#pragma once

#include <utility>
#include <vector>

#include "ir/graph.h"

namespace quern::opt {

// By node: (user, operand).
using Users = std::vector<std::vector<std::pair<int, int>>>;

// Whether the node writes rows, at places that are data, of an Input of which others pick rows, and nothing reads what
// it makes (states of many sequences: a few are read, and others written). Then all that reads the Input may come
// before.
bool WritesLast(const ir::Graph& graph, const Users& users, int n);

// A donated input that something besides its update reads, or whose update is not what is handed back, must not be
// written in place. Its update writes a copy.
StatusOr<ir::Graph> CopySharedTargets(const ir::Graph& graph);

}  // namespace quern::opt
