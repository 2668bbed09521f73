// Attentions over [B, heads, S, D] whose result is turned to [B, S, heads, D] are attentions over rows, so that nothing
// is turned behind them. Kernels read operands that are turned where they lie.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "opt/rewriter.h"

namespace quern::opt {

// What reads the nodes of a graph: by node (user, operand), and which are outputs.
struct Readers {
  explicit Readers(const ir::Graph& graph) : users(graph.Users()) {
    for (const ir::Value& output : graph.outputs) outputs.insert(output.node);
  }
  std::vector<std::vector<std::pair<int, int>>> users;
  std::set<int> outputs;
};

// Whether all that reads the result of node n, [batch, heads, S, D], turns it to [batch, S, heads, D].
bool WantsRowsFirst(const ir::Graph& graph, const Readers& readers, int n, const Extent& batch, const Extent& heads);

// Whether node n is an Attention over [B, heads, S, D] that is to be one over rows, and what is made of it.
bool IsTurnedToRows(const ir::Graph& graph, const Readers& readers, int n);
StatusOr<ir::Value> OverRows(Rewriter& rewriter, int n);

}  // namespace quern::opt
