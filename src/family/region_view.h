// A set of nodes as a family sees it: a candidate while a graph is being fused, and the body of a region afterwards.
// Both answer the same questions, so that what a family matched is what it lowers.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "family/target_facts.h"
#include "ir/graph.h"
#include "ir/op.h"

namespace quern::family {

// What a kernel may do with a value that lies in memory: a Param is rows of a model file, mapped and not to be written;
// an Input that is donated to an output may be.
enum class Memory : uint8_t { kPlain, kParam, kWritable };
// By node of the graph.
std::vector<Memory> MemoryOf(const ir::Graph& graph);

// A graph with what families ask of it again and again: one that is being fused, or the body of a region.
class Scope {
 public:
  // Of a graph that is being fused. What is named here outlives the scope.
  Scope(const ir::Graph& graph, const SymbolRanges& ranges, const TargetFacts& facts);
  // Of the body of `region`: an Input there is what the operand of the region is in the graph around it, whose nodes'
  // memory is `outer`.
  Scope(std::span<const Memory> outer, const ir::Node& region, const SymbolRanges& ranges, const TargetFacts& facts);

  const ir::Graph& graph;
  const SymbolRanges& ranges;  // of the symbols: as narrow as the guard makes them
  const TargetFacts& facts;
  const std::vector<std::vector<std::pair<int, int>>> users;  // by node: (user, operand)

  bool IsOutput(ir::Value value) const;
  // Of a value that comes from outside of a region.
  bool IsParam(int n) const { return memory_[n] == Memory::kParam; }
  bool IsWritable(int n) const { return memory_[n] == Memory::kWritable; }

 private:
  std::vector<Memory> memory_;             // by node
  std::vector<std::vector<bool>> output_;  // by node and result
};

// Nodes of a graph, ascending.
class NodeSet {
 public:
  NodeSet() = default;
  explicit NodeSet(std::vector<int> nodes);
  bool Has(int n) const;
  // The position of n among the nodes, or -1.
  int Position(int n) const;
  const std::vector<int>& nodes() const { return nodes_; }
  NodeSet With(const NodeSet& other) const;
  NodeSet Without(int n) const;

 private:
  std::vector<int> nodes_;
};

class RegionView {
 public:
  // A candidate: its results are what is used outside of it.
  RegionView(const Scope& scope, NodeSet nodes);
  // All of a body: its results are the body's outputs, in order.
  explicit RegionView(const Scope& body);

  const Scope& scope;
  const ir::Graph& graph;
  const SymbolRanges& ranges;
  const TargetFacts& facts;

  const std::vector<int>& nodes() const { return nodes_.nodes(); }
  const NodeSet& set() const { return nodes_; }
  bool Has(int n) const { return nodes_.Has(n); }
  const ir::Node& node(int n) const { return graph.node(n); }
  const ir::TensorType& type(ir::Value value) const { return graph.type(value); }
  std::span<const std::pair<int, int>> users(int n) const { return scope.users[n]; }

  // Whether the node moves elements of a block format, which it decodes.
  bool DecodesBlocks(const ir::Node& node) const {
    return node.op->kind == ir::OpKind::kIndex && !node.inputs.empty() && IsBlock(type(node.inputs[0]).dtype);
  }

  // Values that are needed outside; of a body, in the order of its outputs.
  const std::vector<ir::Value>& results() const { return results_; }
  // Whether a node of the region reads n, and whether somebody else needs a result of n.
  bool IsReadInside(int n) const;
  bool IsReadOutside(int n) const;

  // Of a body: its Inputs, which stand for the operands of the region, in order; and the position of `value` among
  // them, or -1.
  const std::vector<int>& inputs() const { return inputs_; }
  int InputIndex(ir::Value value) const;

  // A constant of one element outside of the nodes: bodies have it as a number that is written out, no buffer.
  bool IsNumber(ir::Value value) const;

  // The value before any views of the region that only change its extents.
  ir::Value BeforeReshapes(ir::Value value) const;
  // By position in nodes(): whether the node is, or depends on, one for which `root` holds.
  std::vector<bool> DependsOn(bool (*root)(const ir::Node& node)) const;

  // "MatMul %5", for sentences.
  std::string Describe(int n) const;
  int64_t UpperBound(const Extent& extent) const { return extent.UpperBound(ranges).value_or(INT64_MAX); }

 private:
  NodeSet nodes_;
  std::vector<ir::Value> results_;
  std::vector<int> inputs_;
};

}  // namespace quern::family
