// A graph that is run to look at values inside of it: for ranges (Calibrator) and for importance (CollectImportance).
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace quern::compiler {

struct Observed {
  std::string name;
  ir::Value value;
};

// These outputs, in this order, take the place of the graph's own; its states stay, in front of them.
void Observe(ir::Graph& graph, const std::vector<Observed>& outputs);

}  // namespace quern::compiler
