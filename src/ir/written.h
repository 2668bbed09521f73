// Nodes as a file says they are, text or binary: what every reader of graphs does with one when it has been read.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace quern::ir {

// Graphs inside graphs that readers follow.
inline constexpr int kMaxNesting = 8;

struct WrittenNode {
  const OpDef* op = nullptr;
  std::vector<Value> inputs = {};  // that the graph has
  Attributes attributes = {};
  std::optional<std::vector<uint8_t>> data = {};  // of a Constant
  std::vector<TensorType> results = {};
  int origin = -1;
  std::vector<std::shared_ptr<const Graph>> bodies = {};  // as many as the op has
};

// Adds it through the checking Graph::Add. Errors: those of that; a leaf without one type or a name, a Region without a
// family, data of what is no Constant; results that are not those that inference finds.
Status AddWritten(Graph& graph, WrittenNode node);

}  // namespace quern::ir
