// Composite ops replaced by their expansion: Softmax(x) becomes Reduce max, Sub, Exp, Reduce sum, Div. An expansion may
// hold composites itself, so the walk is repeated until none is left.

#include <algorithm>

#include "ir/composite.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

constexpr int kMaxDepth = 16;  // of composites within composites; more is a cycle among op files

// Whether composites are left, here or in bodies.
bool HasComposites(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const ir::Node& node) {
    return ir::IsExpanded(node) ||
           std::any_of(node.bodies.begin(), node.bodies.end(), [](const auto& body) { return HasComposites(*body); });
  });
}

StatusOr<ir::Graph> ExpandOnce(const ir::Graph& graph) {
  Rewriter rewriter(graph, "expand_composites", ExpandComposites);
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    if (!ir::IsExpanded(node)) {
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
      continue;
    }
    if (node.op->expand == nullptr) return absl::InternalError(absl::StrFormat("%s has no expansion", node.op->name));
    QUERN_ASSIGN(const std::vector<ir::Value> results,
                 node.op->expand(rewriter.to, node, rewriter.Now(node.inputs), rewriter.OriginOf(n)));
    if (results.size() != node.results.size()) {
      return absl::InternalError(
          absl::StrFormat("%s expands to %u results, %u expected", node.op->name, results.size(), node.results.size()));
    }
    for (size_t r = 0; r < results.size(); ++r) {
      ir::Value result = results[r];
      const ir::TensorType& expected = node.results[r];
      if (const ir::TensorType& made = rewriter.to.type(result); made.dtype == expected.dtype && made != expected) {
        // Of sizes that the graph requires to be equal, the expansion took the other.
        ir::Expansion sized(rewriter.to, rewriter.OriginOf(n));
        QUERN_ASSIGN(const std::vector<ir::Value> one, sized.Finish({sized.Sized(result, expected.dims)}));
        result = one[0];
      }
      if (rewriter.to.type(result) != expected) {
        return absl::InternalError(absl::StrFormat("%s expands to %s, %s expected", node.op->name,
                                                   rewriter.to.type(result).ToString(), expected.ToString()));
      }
      rewriter.Replace({n, static_cast<int>(r)}, result);
    }
  }
  return rewriter.Finish();
}

}  // namespace

StatusOr<ir::Graph> ExpandComposites(const ir::Graph& graph) {
  QUERN_ASSIGN(ir::Graph result, ComplexAsPairs(graph));
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    if (!HasComposites(result)) return result;
    QUERN_ASSIGN(result, ExpandOnce(result));
    QUERN_ASSIGN(result, ComplexAsPairs(result));
  }
  return absl::InternalError("composites expand into composites without end");
}

}  // namespace quern::opt
