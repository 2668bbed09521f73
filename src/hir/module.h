// HIR: a model as blocks (RmsNorm, Attention, SwiGLU, LlamaDecoderBlock...). A Module is built, printed and lowered to
// MIR.
//
// Blocks are rows of a table (block.h), one file each in src/hir/blocks/. Types are inferred when a block is added, so
// an error names the block, its label and the operand that is wrong. Lowering walks the nodes in order.
//
//   Module m;
//   m.symbols = {{"SEQ", {1, 256}}};
//   QUERN_ASSIGN(Value x, m.AddInput("x", {DType::kF32, {Extent::Symbol("SEQ"), 64}}));
//   QUERN_ASSIGN(Value w, m.AddParam("w", {DType::kF32, {64, 32}}));
//   QUERN_ASSIGN(std::vector<Value> y, m.Add("Linear", {x, w}, {{"act", std::string("Silu")}}));
//   m.outputs = y;
//   QUERN_ASSIGN(ir::Graph graph, Lower(m));
// Print(m), which Parse reads back:
//   module module sym SEQ in 1..256 fusion direct {
//     %0 = Input() {name = "x"} : f32[SEQ, 64]  @"x"
//     %1 = Param() {name = "w"} : f32[64, 32]  @"w"
//     %2 = Linear(%0, %1) {act = "Silu", bias = false, weight_layout = "kn"} : f32[SEQ, 32]  @"linear"
//     return %2
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ir/attributes.h"
#include "ir/graph.h"
#include "ir/type.h"

namespace quern::hir {

using ir::Attributes;
using ir::TensorType;

struct BlockDef;  // block.h

// One result of one node. Value{} is an optional operand that is absent.
struct Value {
  int node = -1;
  int result = 0;
  bool absent() const { return node < 0; }
  bool operator==(const Value&) const = default;
};

struct Node {
  const BlockDef* block = nullptr;
  std::vector<Value> inputs;  // as many as the block declares (absent ones as Value{}), except for Mir
  Attributes attributes;
  std::vector<TensorType> results;
  std::string label;  // "layers.3/attention": names of the enclosing sub-blocks, then the block's own label
  std::shared_ptr<const std::vector<uint8_t>> data;      // Constant only
  const ir::OpDef* op = nullptr;                         // Mir only
  std::vector<std::shared_ptr<const ir::Graph>> bodies;  // Mir only, of an op that has some
};

// Whether it is what a run is given, and a parameter of the model.
bool IsInput(const Node& node);
bool IsParam(const Node& node);

// Direct: blocks known statically lower to fused MIR ops at once. Fusable: lower to primitives and leave the finding of
// patterns to the MIR passes (what autodiff needs). Both reach the same regions.
enum class FusionPolicy : uint8_t { kDirect, kFusable };

class Module {
 public:
  std::string name = "module";
  FusionPolicy policy = FusionPolicy::kDirect;
  SymbolRanges symbols;
  std::vector<Value> outputs;
  std::vector<std::string> output_names;  // as ir::Graph has them
  std::vector<ir::Donation> donations;
  ir::QuantisationMap quantisation;  // of the values of the graph that Lower makes

  const std::vector<Node>& nodes() const { return nodes_; }
  const TensorType& type(Value value) const { return nodes_[value.node].results[value.result]; }

  // Appends a block. The label defaults to the block's own, that of a MIR op to the number of its node, "%7". Errors
  // carry a Diagnostic; the module is unchanged then.
  StatusOr<std::vector<Value>> Add(std::string_view block, std::vector<Value> inputs, Attributes attributes = {},
                                   std::string label = "");
  StatusOr<Value> AddInput(std::string name, TensorType type);
  StatusOr<Value> AddParam(std::string name, TensorType type);
  // `data`: dense, little-endian.
  StatusOr<Value> AddConstant(TensorType type, std::vector<uint8_t> data, std::string label = "");
  // One MIR op verbatim. `declared`: its results as they were written down, where they were.
  StatusOr<std::vector<Value>> AddMir(std::string_view op, std::vector<Value> inputs, Attributes attributes = {},
                                      std::string label = "", std::vector<std::shared_ptr<const ir::Graph>> bodies = {},
                                      std::vector<TensorType> declared = {});
  StatusOr<std::vector<Value>> AddRegion(std::string family, std::vector<Value> inputs,
                                         std::shared_ptr<const ir::Graph> body, std::string label = "");

  // A node as it was written down: its label is taken as it is ("": as if added without one), and the results that it
  // has are those that inference finds, or it is an error. The module is unchanged then.
  Status AddWritten(Node node);

  // A node of another module over operands of this one: inferred anew, its label below the sub-blocks that are open.
  StatusOr<std::vector<Value>> AddCopy(Node node);

  // Nodes added from here to the CloseScope that takes the number are labelled with the prefix "NAME/".
  size_t OpenScope(std::string name);
  // Closes that scope and all that were opened in it.
  void CloseScope(size_t scope);

  // Nodes added inside `build` are labelled with the prefix "NAME/". After an error the module is as it was before.
  Status Named(std::string_view name, const std::function<Status()>& build);

 private:
  friend class Builder;
  StatusOr<std::vector<Value>> Append(Node node);
  // `label` below the sub-blocks that are open; the number of the next node when it is empty.
  std::string Label(std::string_view label) const;
  // That each operand of a block format lies as its user reads it.
  Status CheckStorage(const Node& node) const;
  // One name space for inputs and params, like that of the graph.
  Status CheckUnique(const Node& leaf) const;
  // What AddWritten needs to know before inference runs.
  Status CheckWritten(const Node& node) const;
  // Operand types by position, null where absent; errors name values that do not exist.
  StatusOr<std::vector<const TensorType*>> OperandTypes(const Node& node) const;

  std::vector<Node> nodes_;
  std::unordered_map<std::string, int> leaves_;  // inputs and params, by name
  std::vector<std::string> scopes_;
};

// Lowers every block in order to verified MIR, by the Fusable policy where there is a quantisation map: what fused ops
// multiply has no names. Errors carry the label path of the block.
StatusOr<ir::Graph> Lower(const Module& module);
// The same with the Fusable policy, whatever the module's own: what autodiff takes.
StatusOr<ir::Graph> LowerForAutodiff(Module module);
// An existing MIR graph as a module of Mir blocks; Lower gives the same graph back.
StatusOr<Module> WrapGraph(const ir::Graph& graph);
// The whole module as text.
std::string Print(const Module& module);
// Whether the first word of a text, but for comments, is the one that module text begins with.
bool IsModuleText(std::string_view text);
// Reads it back: it prints as the same text. Errors: kInvalid with line and column, those of blocks with their line.
StatusOr<Module> Parse(std::string_view text);

}  // namespace quern::hir
