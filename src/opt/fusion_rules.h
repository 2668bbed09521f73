// What a region may hold: one rule a family, stated over a set of nodes of a graph. Fusion asks the rule before it
// joins two sets; the rules admit what src/codegen takes and what costs no work twice.
//
// A rule fails with a sentence for the fusion report: "the results of a map region differ in extents: ...".
#pragma once

#include <string>
#include <vector>

#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {

// The graph being fused, with what the rules ask of it again and again.
class FusionContext {
 public:
  FusionContext(const ir::Graph& graph, const FuseOptions& options);

  const ir::Graph& graph;
  const FuseOptions options;
  const std::vector<std::vector<std::pair<int, int>>> users;
  std::vector<bool> is_output;  // by node: its value is an output of the graph
  std::vector<bool> once;       // by node: OncePerBinding
  std::vector<bool> in_place;   // by Update node: its target is donated and nothing else reads it

  const ir::Node& node(int n) const { return graph.node(n); }
  const ir::TensorType& type(int n) const { return graph.node(n).results[0]; }
  // "MatMul %5"
  std::string Describe(int n) const;
};

// Nodes of a graph, ascending.
class NodeSet {
 public:
  NodeSet() = default;
  explicit NodeSet(std::vector<int> nodes);
  bool Has(int n) const;
  const std::vector<int>& nodes() const { return nodes_; }
  NodeSet With(const NodeSet& other) const;
  NodeSet Without(int n) const;

 private:
  std::vector<int> nodes_;
};

// Nodes of the set whose value is used outside of it, or is an output of the graph.
std::vector<int> OutputsOf(const FusionContext& context, const NodeSet& set);

// The family that takes the set as one region. Error: why none does.
StatusOr<std::string> FamilyOf(const FusionContext& context, const NodeSet& set);

// ---------------------------------------------------------------------------------------------------------------------
// The rules by family, and what they share.

Status MapRule(const FusionContext& context, const NodeSet& set);
Status ReduceRule(const FusionContext& context, const NodeSet& set);
Status MatmulRule(const FusionContext& context, const NodeSet& set);
Status AttentionRule(const FusionContext& context, const NodeSet& set);
Status UpdateRule(const FusionContext& context, const NodeSet& set);

// Whether a single MatMul can be written with tile ops; such products share a grid when they share their left side.
bool IsTileMatmul(const FusionContext& context, int n);

// By position in the set: whether the node depends on a node for which `root` holds (roots themselves included).
std::vector<bool> DependsOn(const FusionContext& context, const NodeSet& set, bool (*root)(const ir::Node&));

// Fails when an elementwise node would be computed more often than it has elements, by a broadcast or a gather behind
// it. `named`: by position in the set, values that the family computes once and keeps.
Status NoWorkTwice(const FusionContext& context, const NodeSet& set, const std::vector<bool>& named);

// The value before any Reshapes within the set.
int BeforeReshapes(const FusionContext& context, const NodeSet& set, int n);

inline bool IsElementwise(const ir::Node& node) { return node.op->family == ir::Family::kElementwise; }
inline bool IsIndex(const ir::Node& node) { return node.op->family == ir::Family::kIndex; }
inline bool IsReduce(const ir::Node& node) { return node.op->family == ir::Family::kReduce; }
inline bool IsMatmul(const ir::Node& node) { return node.op->family == ir::Family::kMatmul; }
inline bool IsAttention(const ir::Node& node) { return node.op->family == ir::Family::kAttention; }
inline bool IsQuantize(const ir::Node& node) { return node.op->family == ir::Family::kQuantize; }
inline bool IsUpdate(const ir::Node& node) { return node.op->family == ir::Family::kUpdate; }

}  // namespace quern::opt
