// Which graphs no target with blocks of threads takes.
#pragma once

#include <algorithm>

#include "ir/op.h"
#include "opt/passes.h"

namespace quern::testing {

// Whether some op, of a body too, is one that only CPUs compute, which is said when the graph is planned.
inline bool HasNoBlocks(const ir::Graph& graph) {
  const StatusOr<ir::Graph> expanded = opt::ExpandComposites(graph);
  return expanded.ok() && std::any_of(expanded->nodes().begin(), expanded->nodes().end(), [](const ir::Node& node) {
           const bool recurrence = ir::IsRoot(node, "delta_rule") || ir::IsRoot(node, "selective_scan") ||
                                   ir::IsRoot(node, "triangular_solve") || ir::IsRoot(node, "call");
           const bool inside =
               std::any_of(node.bodies.begin(), node.bodies.end(), [](const auto& body) { return HasNoBlocks(*body); });
           return recurrence || inside || node.op->sort != nullptr || node.op->scatter != nullptr;
         });
}

}  // namespace quern::testing
