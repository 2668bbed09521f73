// Graph: MIR. Nodes in topological order over typed tensors; every op is pure; state is an input donated to an output.
//
// Text form (print.cc, parse.cc), read back to an equal graph:
//   graph ffn sym SEQ in 1..256 {
//     %0 = Input() {name = "x"} : f32[SEQ, 256]
//     %1 = Param() {name = "blk.0.ffn_up.weight"} : q4_K[512, 256]
//     %2 = MatMul(%0, %1) {transpose_b = true} : f32[SEQ, 512]  @"layers.0/ffn_up"
//     %3 = Silu(%2) : f32[SEQ, 512]
//     return %3 as "y"
//     quantise "x" {dtype = u8, high = 2.64, low = 0.0, symmetric = false}
//   }
// A node with several results is `%4:2 = ...` and its results are %4.0 and %4.1. Some nodes own graphs, by name:
//   %5 = Region(%0, %1) {family = "matmul"} : f32[SEQ, 512] body graph body { ... }
//   %6 = If(%2, %0) : f32[SEQ, 512] then graph then { ... } else graph else { ... }
// The Inputs of a body stand for operands, by position: which ones, its op says. A Param of a body is the Param of that
// name of the whole graph, wherever else it is named.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "ir/attributes.h"
#include "ir/quantisation.h"
#include "ir/type.h"

namespace quern::ir {

struct OpDef;  // op.h
class Graph;

// One result of one node.
struct Value {
  int node = -1;
  int result = 0;
  bool operator==(const Value&) const = default;
  auto operator<=>(const Value&) const = default;
};

// Where a node came from: the HIR block's label path, and the pass that last made the node.
struct Origin {
  std::string label;  // "layers.3/ffn/up"
  std::string pass;   // "lower", "expand_composites", ...
  bool operator==(const Origin&) const = default;
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<Value> inputs;
  Attributes attributes;
  std::vector<TensorType> results;
  int origin = -1;  // index into Graph::origins(), or -1
  // In the order of OpDef::bodies; shared so that rewriting a graph copies none that it leaves alone.
  std::vector<std::shared_ptr<const Graph>> bodies;
  // Data of a Constant, little-endian, dense; shared so that rewriting a graph copies no weights.
  std::shared_ptr<const std::vector<uint8_t>> data;

  const Graph& body(int index = 0) const { return *bodies[index]; }
};

// An output of the graph that takes over the memory of an input: carried state, such as a KV cache. In a body: what the
// node makes of that operand may be written over it, and the operand is not read afterwards.
struct Donation {
  int output = 0;     // index into outputs()
  std::string input;  // name of the Input
  bool operator==(const Donation&) const = default;
};

class Graph {
 public:
  std::string name = "graph";
  SymbolRanges symbols;  // every symbol that occurs, with its range
  std::vector<Value> outputs;
  std::vector<std::string> output_names;  // as many, each another, or none: numbers. Bodies have none
  std::vector<Donation> donations;
  std::vector<ExtentConstraint> constraints;  // found by inference, checked when symbols are bound
  // What insert_qdq puts pairs on; the values are those of floats until then. Bodies have none.
  QuantisationMap quantisation;

  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(int index) const { return nodes_[index]; }
  const TensorType& type(Value value) const { return nodes_[value.node].results[value.result]; }
  const std::vector<Origin>& origins() const { return origins_; }

  // Appends a node: defaults are filled in, arity, attributes and operand dtypes checked, result types inferred.
  // Errors name the op, the operand and the origin; the graph is unchanged then.
  // `declared`: result types as they were written down, where the node was.
  StatusOr<Value> Add(const OpDef& op, std::vector<Value> inputs, Attributes attributes = {}, int origin = -1,
                      std::vector<std::shared_ptr<const Graph>> bodies = {}, std::span<const TensorType> declared = {});
  // The same for the op named `op`.
  StatusOr<Value> Add(std::string_view op, std::vector<Value> inputs, Attributes attributes = {}, int origin = -1,
                      std::vector<std::shared_ptr<const Graph>> bodies = {});
  // Leaves and regions carry more than attributes.
  StatusOr<Value> AddInput(std::string name, TensorType type, int origin = -1);
  StatusOr<Value> AddParam(std::string name, TensorType type, int origin = -1);
  StatusOr<Value> AddConstant(TensorType type, std::vector<uint8_t> data, int origin = -1);
  StatusOr<Value> AddRegion(std::string family, std::vector<Value> inputs, std::shared_ptr<const Graph> body,
                            int origin = -1);

  // A copy of `node`, of this or another graph, over operands of the types that it has there: nothing is inferred anew
  // (Verify does that), and data and bodies are shared. Error: a leaf's name that is taken.
  StatusOr<Value> AddCopy(const Node& node, std::vector<Value> inputs, int origin = -1);

  // The row of origins() for this origin, added when new.
  int AddOrigin(Origin origin);

  // Users of each node, by node index: (user node, operand) pairs; outputs are not listed.
  std::vector<std::vector<std::pair<int, int>>> Users() const;
  // Nodes whose op is Input / Param, in order. Those of bodies are not among them.
  std::vector<int> Inputs() const;
  std::vector<int> Params() const;

 private:
  // Adds the name of an Input or Param to those that are taken; an error when it is.
  Status TakeName(const char* op, const std::string& name);

  std::vector<Node> nodes_;
  std::vector<Origin> origins_;
  std::unordered_map<std::string, int> origin_of_;  // "PASS\nLABEL" to its row
  std::unordered_set<std::string> names_;           // of Inputs and Params
};

// Checks the whole graph again from the op table: operands precede users, arity, attributes, operand dtypes,
// re-inferred types, unique Input and Param names, bodies (those of one Param name agree on its type), outputs,
// donations, the quantisation map. On in release builds.
Status Verify(const Graph& graph);

// The Params of the graph and of all bodies in it, each name once: first those of the graph, in order.
std::vector<const Node*> AllParams(const Graph& graph);

std::string Print(const Graph& graph);
StatusOr<Graph> Parse(std::string_view text);
// Piece of Verify that building uses too.
Status VerifyRegion(const Graph& graph, int node);
// `status` with the origin's label as its provenance, when it has one.
Status WithOrigin(const Graph& graph, int origin, Status status);

// What an output is called by the names of a graph's outputs: its number where they have none.
std::string OutputName(const std::vector<std::string>& names, size_t output);
// Whether they say more than numbers do.
bool HasNames(const std::vector<std::string>& names);
// Error: two outputs of one name, neither of them a state's.
Status CheckOutputNames(const std::vector<std::string>& names, const std::vector<Donation>& donations);

// Equal in everything but origins.
bool SameGraph(const Graph& a, const Graph& b);

}  // namespace quern::ir
