#include "opt/expand_nodes.h"

#include <algorithm>

#include "ir/composite.h"
#include "ir/op.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

constexpr int kMaxDepth = 16;  // of expansions within expansions; more is a cycle among op files

using Which = bool (*)(const ir::Node& node);

// Whether such nodes are left, here or in bodies.
bool IsLeft(const ir::Graph& graph, Which which) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const ir::Node& node) {
    return which(node) ||
           std::any_of(node.bodies.begin(), node.bodies.end(), [&](const auto& body) { return IsLeft(*body, which); });
  });
}

// The Param of that name that an expansion has added, if one has.
std::optional<ir::Value> Added(const ir::Graph& graph, const ir::Node& param) {
  for (const int n : graph.Params()) {
    if (graph.node(n).attributes.String("name") == param.attributes.String("name")) return ir::Value{n, 0};
  }
  return std::nullopt;
}

StatusOr<ir::Graph> ExpandOnce(const ir::Graph& graph, const char* pass, Which which) {
  Rewriter rewriter(graph, pass, [&](const ir::Graph& body) { return ExpandOnce(body, pass, which); });
  bool bodies = false;
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    if (!which(node)) {
      if (const auto added = bodies && ir::IsParam(node) ? Added(rewriter.to, node) : std::nullopt)
        rewriter.Replace({n, 0}, *added);
      else
        QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
      continue;
    }
    bodies = bodies || !node.bodies.empty();
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

StatusOr<ir::Graph> ExpandNodes(const ir::Graph& graph, const char* pass, Which which,
                                StatusOr<ir::Graph> (*between)(const ir::Graph& graph)) {
  ir::Graph result = graph;
  for (int depth = 0;; ++depth) {
    if (between != nullptr) {
      QUERN_ASSIGN(result, between(result));
    }
    if (!IsLeft(result, which)) return result;
    if (depth == kMaxDepth) return absl::InternalError("composites expand into composites without end");
    QUERN_ASSIGN(result, ExpandOnce(result, pass, which));
  }
}

}  // namespace quern::opt
