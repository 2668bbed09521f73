// The op table. One op, one file in src/ir/ops/, each a function that returns its OpDef; CMake collects them into a
// sorted generated table. Everything about an op that is not the common machinery stands in its file; everything else
// (builder, printer, parser, verifier, reference evaluation, fusion class, emitters, random graphs, op reference) walks
// this table.
//
// The op of src/ir/ops/silu.cc:
//   const OpDef& Op_silu() {
//     static const OpDef* const op = Elementwise({
//         .name = "Silu", .doc = "x / (1 + e^-x), also called swish",
//         .body = [](Args a) { return a[0] * Call(Op::kSigmoid, {a[0]}); },
//         .reference = [](double x, double, double) -> double { return x / (1 + std::exp(-x)); },
//     });
//     return *op;
//   }
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "base/status.h"
#include "ir/graph.h"
#include "ir/line.h"
#include "ir/scatter.h"
#include "ir/strides.h"
#include "kir/kir.h"

namespace quern::ir {

// What an op is to fusion and code generation.
enum class OpKind : uint8_t {
  kLeaf,         // Input, Param, Constant
  kElementwise,  // result[i] from operands at the broadcast of i
  kIndex,        // result[i] from operands at computed indices: views, gathers, joins, rotations
  kRoot,         // what a kernel is built around: a reduction, a product, an attention; OpDef::family takes it
  kPack,         // operand 0 in another format, row by row: ends a chain in any family that holds whole rows
  kWrite,        // a copy of operand 0 with operand 1 written over a part; in place when operand 0 is donated
  kComposite,    // a name for a sub-graph: `expand` gives it; never reaches code generation
  kControl,      // If, While, Scan: bodies that the plan runs as steps of its own
  kRegion,
};

enum class OperandKind : uint8_t {
  kAny,  // of one scalar each: no block format
  kNumeric,
  kFloat,
  kInteger,
  kIndex /* i32 or i64 */,
  kBool,
  kIntegerOrBool,
  kWeight /* floats, or a Param of a block format */,
  kActivation /* floats, or the q8_0 or q8_K that Quantize gives */,
  kLeftSide /* the same, i8, u8, i32 and i64 */,
  kRightSide /* floats, these integers, or a Param of a block format */,
  kTable /* scalars, or a Param of a block format */,
};

// Whether an operand of that kind may have that dtype.
bool Accepts(OperandKind kind, DType dtype);
// "a number": what errors and the reference call the kind.
const char* Phrase(OperandKind kind);

struct OpDef;
struct OperandDef {
  const char* name;
  OperandKind kind = OperandKind::kAny;
  const char* shape = "";  // "[.., K, N]", where the op has a rule: for people
  bool optional = false;   // trailing operands only
  bool variadic = false;   // the last operand only: one or more
  bool own_dtype = false;  // need not have the dtype of the other operands
};
// Whether the operand of the op may, as far as its kind says.
bool Accepts(const OpDef& op, const OperandDef& operand, DType dtype);

struct AttrDef {
  const char* name;
  AttrKind kind;
  std::optional<AttrValue> default_value = std::nullopt;  // none: required
  const char* doc = "";
  std::vector<const char*> choices = {};  // kString: the allowed values, if limited
  bool rare = false;                      // a node has it only where it is not the default
};

// What `infer` sees.
struct InferContext {
  const OpDef& op;
  std::span<const TensorType> operands;
  const Attributes& attributes;
  const SymbolRanges& symbols;
  std::vector<ExtentConstraint>* constraints;
  std::span<const std::shared_ptr<const Graph>> bodies = {};  // as many as the op declares
  // What the graph says of the results where it was written down, or nothing: for ops that this process may not know.
  std::span<const TensorType> declared = {};

  // Errors of this op about one of its operands or attributes; whoever adds the op says where that is.
  Status ShapeError(int operand, std::string expected) const;
  Status DTypeError(int operand, std::string expected) const;
  Status UnsupportedError(int operand, std::string supported) const;  // right, but no kernel does it
  Status AttributeError(std::string_view attribute, std::string expected) const;
  Status Error(DiagnosticCode code, std::string operand, std::string expected, std::string got) const;
  // Asks for left == right or left >= right, which is recorded where the sizes do not show it. False: no sizes do.
  bool Equal(const Extent& left, const Extent& right) const { return Need({left, right, SizeRelation::kEqual}); }
  bool AtLeast(const Extent& left, const Extent& right) const { return Need({left, right, SizeRelation::kAtLeast}); }
  // The same for extents one by one.
  bool Equal(std::span<const Extent> left, std::span<const Extent> right) const;
  // Whether each of `dims`, right-aligned, is 1 or the one of `full`.
  bool BroadcastsTo(std::span<const Extent> dims, std::span<const Extent> full) const;
  bool Need(ExtentConstraint constraint) const;
  // BroadcastDims of an operand with these extents, or a ShapeError.
  StatusOr<std::vector<Extent>> Broadcast(int operand, const std::vector<Extent>& dims) const;
};

// What `map` sees: builds the KIR expression of one result element.
class MapContext {
 public:
  virtual ~MapContext() = default;
  virtual const Node& node() const = 0;
  // Types of operands and of the result.
  virtual const TensorType& operand_type(int operand) const = 0;
  virtual const TensorType& result_type() const = 0;
  // Index of the element to compute: one i64 expression a dimension of the result.
  virtual const kir::Index& index() const = 0;
  // The value of an operand at an index of its own; in bounds, or with `otherwise` where the index may fall outside.
  virtual kir::ExprRef Operand(int operand, kir::Index at, kir::ExprRef otherwise = nullptr) = 0;
};

// Holds a value of any integer dtype, and what one operation makes of two of them.
using Wide = __int128;
// The product as far as its low 64 bits go: that of two u64 has no room.
inline Wide Times(Wide a, Wide b) {
  return static_cast<Wide>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
}

// A tensor of the interpreter: concrete sizes, row-major. Integers are exact, everything else is a double.
struct RefTensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> dims;
  std::vector<double> data;            // of floats, bools (0 or 1), block formats (decoded); of c64 re, im, re, im, ..
  std::vector<int64_t> integers = {};  // of integer dtypes, u64 as its bits; of each tensor one of the two is used

  int64_t elements() const;
  // As many zeros as there are elements, where the dtype has them.
  void Allocate();
  // Position of the element at the right-aligned broadcast of `index`: extents of 1 stretch, leading dimensions drop.
  int64_t Offset(std::span<const int64_t> index) const;
  // The value at a position: the nearest double, and of integers and bools the value itself.
  double Real(int64_t at) const;
  Wide Integer(int64_t at) const;
  double At(std::span<const int64_t> index) const { return Real(Offset(index)); }
  // Of c64.
  std::complex<double> Complex(int64_t at) const { return {data[2 * at], data[2 * at + 1]}; }
  void SetComplex(int64_t at, std::complex<double> value) {
    data[2 * at] = value.real(), data[2 * at + 1] = value.imag();
  }
  // Of an integer dtype: `value` wrapped to it.
  void SetInteger(int64_t at, Wide value);
  // The element of `from`, a tensor of the same dtype, at `position`.
  void Take(int64_t at, const RefTensor& from, int64_t position);
};

// `index` advanced to the next element in row-major order (back to zeros after the last).
void NextIndex(std::span<const int64_t> dims, std::span<int64_t> index);
// What a float or bool dtype stores of a `value` that was computed: f32 stays exact on purpose; halves are computed in
// f32, and rounded to nearest even from there.
double RoundTo(DType dtype, double value);
// The same of a value that no f32 holds before: halves round once.
double RoundOnce(DType dtype, double value);
// What a cast makes of a float: toward zero, the nearest that the integer dtype has, 0 for NaN.
Wide Saturated(DType dtype, double value);
// The limits of an integer dtype.
Wide Lowest(DType dtype);
Wide Highest(DType dtype);

// What `reference` sees.
struct RefContext {
  const Node& node;
  std::span<const RefTensor* const> operands;  // null for an absent optional operand
  const Binding& binding;                      // for extents in attributes
  std::vector<RefTensor>& results;             // sized by inference, zero-filled; to be written
  // What a body of the node makes of these values of its Inputs.
  std::function<StatusOr<std::vector<RefTensor>>(int body, std::span<const RefTensor* const> inputs)> run = {};
};

// A box of a result.
struct Piece {
  std::vector<std::pair<Extent, Extent>> ranges;  // by dimension: from, to
  // All of this operand, its first element at the first of the box; or -1: one value, `fill`.
  int operand = -1;
  kir::ExprRef fill = nullptr;
};

// How far a kernel may be from `reference`: OpDef says of what.
struct Contract {
  double rtol = 0, atol = 0;
};

// Operands and attributes that an op takes: what tests draw of it.
struct Example {
  std::vector<const char*> operands;  // types; S is a symbol of 1 to 17
  Attributes attributes = {};
};

// What is ordered along the last axis of operand 0, for the ops of the family "sort": results are the values in order
// and where they stood, both as many as the first result has along that axis.
struct SortDef {
  bool (*descending)(const Node& node);
};

// A result that may be written over the memory of an operand of its type, once nothing else needs that operand.
struct Takeover {
  int result = 0, operand = 0;
};

struct IdentityContext;  // ir/identity.h
struct PairsContext;     // ir/pairs.h
// The value that takes the place of a node, or nothing.
using Replacement = StatusOr<std::optional<Value>>;

struct OpDef {
  const char* name;
  const char* doc;
  OpKind kind;
  // kRoot, kPack, kWrite: the name of the family (codegen::Families) that makes kernels of it.
  const char* family = nullptr;
  std::vector<OperandDef> operands = {};
  std::vector<AttrDef> attributes = {};
  std::vector<const char*> bodies = {};  // names of the graphs that a node of it owns

  // Result types. Operand count, dtypes and attribute kinds have been checked.
  StatusOr<std::vector<TensorType>> (*infer)(const InferContext&);
  // kElementwise, kIndex: the result element at ctx.index().
  kir::ExprRef (*map)(MapContext& context) = nullptr;
  int reads = 1;  // how often map reads an element of operand 0
  // kIndex: where the result lies in the memory of operand 0, which has it there as `operand` says; nothing where that
  // is no matter of strides.
  std::optional<Strides> (*strides)(const Node& node, const Strides& operand) = nullptr;
  // kIndex: the element at column c of a row is made of operand 0 at columns of the same row in the same aligned run of
  // this many, in every run alike; 0: of others too. What the other operands give does not depend on operand 0.
  int64_t (*row_span)(const Node& node) = nullptr;
  // kIndex: operands are read at the broadcast of the index, as elementwise ops read them.
  bool broadcasts = false;
  // kIndex: the boxes that the result is made of; together they are all of it, and none meets another.
  std::vector<Piece> (*pieces)(const Node& node, std::span<const TensorType> operands) = nullptr;
  // kRoot of the family "lines".
  const LineDef* line = nullptr;
  // kRoot of the family "sort".
  const SortDef* sort = nullptr;
  // kWrite at places that another operand names.
  const ScatterDef* scatter = nullptr;
  // kRoot: a state that its kernels write over in place where it is donated.
  std::optional<Takeover> takes_over = std::nullopt;
  // What the attributes are where operand 0, an image [N, C, s..], has its channels last, [N, s.., C], as all operands
  // of a variadic op then have, and the result if it has as many dimensions; nothing where the node has no such form.
  std::optional<Attributes> (*channels_last)(const Node& node, std::span<const TensorType> operands) = nullptr;
  // A simpler value that the node is bit for bit: of one result, or nothing where it is none.
  Replacement (*identity)(const IdentityContext&) = nullptr;
  // The meaning stated a second time in plain double arithmetic, of integers in exact one, sharing nothing with `map`.
  Status (*reference)(RefContext&) = nullptr;
  // kComposite: the sub-graph; returns the values that take the place of the results. An op of another kind may have
  // one for some of its nodes, those of which `expands` is true: of a dtype or an axis that its kernels do not take.
  StatusOr<std::vector<Value>> (*expand)(Graph& graph, const Node& node, std::span<const Value> inputs,
                                         int origin) = nullptr;
  bool (*expands)(const Node& node) = nullptr;
  // What takes the place of the results of a node over c64, where values of c64 are f32 [.., 2], re and im, before and
  // after (ir/pairs.h). An op without it takes no c64.
  StatusOr<std::vector<Value>> (*pairs)(const PairsContext&) = nullptr;

  // Numeric contract of a kernel against `reference`, for each element of a float result: off by no more than rtol of
  // its magnitude, and atol. The numbers are those of kernels in f32 (halves are computed in f32, and rounded); in f64
  // both are 2^-29 of it (ContractOf). atol is for functions that lose places by cancelling: their files say where.
  double rtol = 1e-6;
  double atol = 0;
  // The same where it differs from node to node.
  Contract (*contract)(const Node& node) = nullptr;
  // The magnitude of each element, where that is not |result|: of a sum that of its terms, whose roundings are left
  // when they cancel. Writes to `results` like `reference`.
  Status (*magnitude)(RefContext&) = nullptr;
  const char* onnx = nullptr;
  // Operand values for random tests: every float operand is drawn from [low, high].
  double sample_low = -4, sample_high = 4;
  // Of ops that are not elementwise over numbers of any extents: some of each rule that they have.
  std::vector<Example> examples = {};
  // Whether a small error of an operand may move the result by much.
  bool jumps = false;
};

// Whether the node is a root that the family of that name builds kernels around.
inline bool IsRoot(const Node& node, std::string_view family) {
  return node.op->kind == OpKind::kRoot && family == node.op->family;
}

// Which leaf a node is, if one.
bool IsInput(const Node& node);
bool IsParam(const Node& node);
bool IsConstant(const Node& node);
// Whether an expansion takes its place before code generation.
inline bool IsExpanded(const Node& node) {
  return node.op->kind == OpKind::kComposite || (node.op->expands != nullptr && node.op->expands(node));
}
inline bool IsLeaf(const Node& node) { return node.op->kind == OpKind::kLeaf; }
inline bool IsRegion(const Node& node) { return node.op->kind == OpKind::kRegion; }
// If, While, Scan: nodes whose bodies are graphs as the one around them is.
inline bool IsControl(const Node& node) { return node.op->kind == OpKind::kControl; }

// What the node may write over: of a kWrite operand 0, of others what their op says.
std::optional<Takeover> TakeoverOf(const Node& node);
// Whether the node writes over a part of operand 0 that begins where operand 2 says.
bool IsDynamicUpdate(const Node& node);
// Of a kWrite: what it writes over operand 0.
inline Value Written(const Node& node) { return node.inputs[node.op->scatter != nullptr ? 2 : 1]; }
// Whether the node gives the values of operand 0 in another dtype.
bool IsCast(const Node& node);
// Whether elements of operand 1, a vector, name the slices of operand 0 along its first dimension that the result has.
bool PicksSlices(const Graph& graph, const Node& node);
// Where operand 0, if it lies in memory, holds the result, dense and in row-major order: the element at which it
// begins; nothing where the result is not of one piece there.
std::optional<Extent> ViewStart(const Graph& graph, const Node& node);
// Whether the node is a view of all of operand 0: its elements with other extents.
bool IsReshape(const Graph& graph, const Node& node);

// Every op, sorted by name. Thread-safe, immutable.
std::span<const OpDef* const> Ops();
// The op named `name`, or null.
const OpDef* FindOp(std::string_view name);
// Whether an elementwise op of one operand and no required attributes has that name: what fused products and blocks
// take.
bool IsActivation(std::string_view name);
// The name that it was meant to be, or "".
std::string NearestOp(std::string_view name);
Status UnknownOp(std::string_view name);

// What an error calls operand i: "gamma", "x[2]" among any number.
std::string OperandName(const OpDef& op, size_t operand);
// Whether operands of that kind lie as rows of blocks when they have a block format, as a Param does, and not planar,
// as what Quantize gives: the type is that of both.
inline bool TakesRows(OperandKind kind) { return kind != OperandKind::kActivation && kind != OperandKind::kLeftSide; }
// That every value of a block format in a graph from outside lies as its users read it, and that no Input or output is
// one that only a Param may be.
Status CheckStorage(const Graph& graph);
// Count and dtypes against the table.
Status CheckOperands(const OpDef& op, std::span<const TensorType> operands);
// Names, kinds and choices against the attributes that `owner`, an op or block, declares; one that is missing gets its
// default, unless it is rare, or is an error without `fill_defaults`. With it, a number stands for a list of one number
// or extent.
Status CheckAttributes(const char* owner, std::span<const AttrDef> defs, Attributes& attributes, bool fill_defaults);
// As many bodies as the op has, each of which verifies and declares no symbol that `symbols` lacks or gives another
// range.
Status CheckBodies(const OpDef& op, std::span<const std::shared_ptr<const Graph>> bodies, const SymbolRanges& symbols);
// All of that, then `infer`: the result types of a node of `op`. Its constraints are appended when there is no error.
// `declared`: the types as they were written down, where they were.
StatusOr<std::vector<TensorType>> InferResults(const OpDef& op, std::span<const TensorType> operands,
                                               Attributes& attributes, const SymbolRanges& symbols,
                                               std::vector<ExtentConstraint>* constraints,
                                               std::span<const std::shared_ptr<const Graph>> bodies = {},
                                               std::span<const TensorType> declared = {});

// ---------------------------------------------------------------------------------------------------------------------
// The contract of results of that dtype.
inline Contract ContractOf(const OpDef& op, DType dtype) {
  const double precision = dtype == DType::kF64 ? 0x1p-29 : 1;  // of a place of f64 in one of f32
  return {op.rtol * precision, op.atol * precision};
}
inline Contract ContractOf(const Node& node, DType dtype) {
  return node.op->contract != nullptr ? node.op->contract(node) : ContractOf(*node.op, dtype);
}

// Factories for the common shapes of op files. The returned OpDef lives forever.

using Args = std::span<const kir::ExprRef>;

struct ElementwiseSpec {
  const char* name;
  const char* doc;
  int arity = 1;
  OperandKind domain = OperandKind::kFloat;
  kir::ExprRef (*body)(Args args) = nullptr;                    // f16 and bf16 operands arrive widened to f32
  double (*reference)(double a, double b, double c) = nullptr;  // where the domain has floats, or bools alone
  // Both, of an op of one operand with attributes, all of which have defaults.
  std::vector<AttrDef> attributes = {};
  kir::ExprRef (*body_by)(const Attributes& attributes, const kir::ExprRef& x) = nullptr;
  double (*reference_by)(const Attributes& attributes, double x) = nullptr;
  Wide (*integer_reference)(Wide a, Wide b, Wide c) = nullptr;  // where it has integers; the result is wrapped
  // Both, where it takes c64: the result is c64, f32 where it is `real`, or what result_dtype says.
  StatusOr<std::vector<Value>> (*pairs)(const PairsContext&) = nullptr;
  std::complex<double> (*complex_reference)(std::complex<double> a, std::complex<double> b) = nullptr;
  bool real = false;
  std::optional<DType> result_dtype = std::nullopt;  // bool for comparisons. Default: the last operand's dtype
  bool first_is_condition = false;                   // Where: operand 0 is bool
  double rtol = 1e-6, atol = 0;
  Replacement (*identity)(const IdentityContext&) = nullptr;
  const char* onnx = nullptr;
  double sample_low = -4, sample_high = 4;
  bool jumps = false;
};
const OpDef* Elementwise(const ElementwiseSpec& spec);
// The literal `value` in the dtype of `like`.
kir::ExprRef Like(const kir::ExprRef& like, double value);
// The value at x of an odd function that is `above` at |x|: -above below 0, and x itself where it is 0 or NaN.
kir::ExprRef Odd(const kir::ExprRef& x, const kir::ExprRef& above);

// The operand's value at the broadcast of the result index: what elementwise ops read.
kir::ExprRef BroadcastOperand(MapContext& context, int operand);

}  // namespace quern::ir
