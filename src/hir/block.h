// The block table: one block, one file in src/hir/blocks/, each a function that returns its BlockDef; CMake collects
// them.
//
// A block states its operands and attributes, infers its result types (with errors that name the operand and what it
// should be), and lowers itself into MIR nodes or into other blocks. src/hir/blocks/rms_norm.cc is a short example.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "hir/module.h"
#include "ir/op.h"

namespace quern::hir {

struct OperandDef {
  const char* name;
  ir::OperandKind kind = ir::OperandKind::kFloat;
  bool optional = false;   // may be absent, wherever it stands
  const char* shape = "";  // "[.., K]": for people
};

// What `infer` sees.
struct InferContext {
  const BlockDef& block;
  const std::string& label;
  std::span<const TensorType* const> operands;  // one for each the block declares; null where absent
  const Attributes& attributes;
  const SymbolRanges& symbols;
  const Node& node;

  bool has(int operand) const { return operands[operand] != nullptr; }
  const TensorType& operand(int index) const { return *operands[index]; }

  // Errors of this block about one of its operands or attributes.
  Status ShapeError(int operand, std::string expected) const;
  Status DTypeError(int operand, std::string expected) const;
  Status UnsupportedError(int operand, std::string supported) const;  // right, but no kernel does it
  Status AttributeError(std::string_view attribute, std::string expected) const;
  Status Error(DiagnosticCode code, std::string operand, std::string expected, std::string got) const;
  // Ok when the operand is absent or has exactly these extents. A symbol against another extent passes: MIR records it.
  Status ExpectDims(int operand, const std::vector<Extent>& dims) const;
  Status ExpectDType(int operand, DType dtype) const;
  Status ExpectRankAtLeast(int operand, int rank) const;
};

// Values made before, by what made them: SharedLinearPair looks here.
using LowerMemo = std::map<std::vector<ir::Value>, std::vector<ir::Value>>;

// What `lower` sees. Stops at the first error, which Finish reports.
class LowerContext {
 public:
  LowerContext(ir::Graph& graph, const Node& node, std::vector<ir::Value> inputs, FusionPolicy policy, LowerMemo& memo);

  ir::Graph& graph;
  const Node& node;
  const std::vector<ir::Value> inputs;  // node -1 where absent
  const FusionPolicy policy;
  LowerMemo& memo;

  const Attributes& attributes() const { return node.attributes; }
  bool direct() const { return policy == FusionPolicy::kDirect; }
  bool has(int operand) const { return inputs[operand].node >= 0; }
  // A scalar after an error, so that blocks need not look at every step.
  const TensorType& type(ir::Value value) const { return value.node < 0 ? none_ : graph.type(value); }
  int origin() const { return origin_; }
  int Part(std::string_view part) const;  // the origin "LABEL/part"
  bool ok() const { return status_.ok(); }

  // Appends a MIR node whose origin is this block's label, or a part of it: "LABEL/part". Under the Fusable policy a
  // composite is replaced by its expansion.
  ir::Value Add(std::string_view op, std::vector<ir::Value> operands, Attributes attributes = {},
                std::string_view part = "");
  // The same with all of its results.
  std::vector<ir::Value> Results(std::string_view op, std::vector<ir::Value> operands, Attributes attributes = {},
                                 std::string_view part = "");
  ir::Value Reshape(ir::Value x, std::vector<Extent> shape, std::string_view part = "");
  ir::Value Zeros(const TensorType& type);                                 // of a scalar dtype
  ir::Value CastTo(DType dtype, ir::Value x, std::string_view part = "");  // x itself when it has the dtype
  // Appends another block under this block's label.
  std::vector<ir::Value> Block(std::string_view block, std::vector<ir::Value> operands, Attributes attributes,
                               std::string_view label);
  // A bias or beta that is absent, or a Constant of zeros: it costs nothing.
  bool IsNothing(ir::Value value) const;

  StatusOr<std::vector<ir::Value>> Finish(std::vector<ir::Value> results) const;
  Status status() const { return status_; }
  void Fail(Status status);

 private:
  ir::Value Take(StatusOr<ir::Value> value);

  int origin_;
  Status status_;
  TensorType none_;
};

struct BlockDef {
  const char* name;
  const char* doc;
  const char* label;                  // default label: "swiglu_ffn"
  const char* carry_label = nullptr;  // the same where the last operand, a state, is given; null: no other
  // An attribute whose value stands in parentheses behind the label ("dequant_matmul(int4)"); null: none.
  const char* label_attribute = nullptr;
  std::vector<OperandDef> operands = {};
  std::vector<ir::AttrDef> attributes = {};
  // What no operand or attribute gives ("type"): a function of its own adds the block (Module::AddInput), Add does not.
  const char* needs = nullptr;
  StatusOr<std::vector<TensorType>> (*infer)(const InferContext&) = nullptr;
  StatusOr<std::vector<ir::Value>> (*lower)(LowerContext&) = nullptr;
};

// Every block, sorted by name. Thread-safe, immutable.
std::span<const BlockDef* const> Blocks();
// The block named `name`, or null.
const BlockDef* FindBlock(std::string_view name);
// A BlockDef that lives forever, from the fields given.
inline const BlockDef* Make(BlockDef block) { return new BlockDef(std::move(block)); }

// Checks count, dtypes and attributes of `node` (defaults are filled in) and infers its results. `operands`: null where
// absent; trailing absent ones are added.
Status CheckNode(Node& node, std::vector<const TensorType*>& operands, const SymbolRanges& symbols);
// Lowers one node; what it makes must have the types that were inferred.
StatusOr<std::vector<ir::Value>> LowerNode(ir::Graph& graph, const Node& node, std::vector<ir::Value> inputs,
                                           FusionPolicy policy, LowerMemo& memo);

}  // namespace quern::hir
