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

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "kir/kir.h"

namespace quern::ir {

// How code generation treats an op.
enum class Family : uint8_t {
  kLeaf,         // Input, Param, Constant
  kElementwise,  // result[i] from operands at the broadcast of i
  kIndex,        // result[i] from operands at computed indices: views, Gather, Concat, Pad, Rope
  kReduce,       // Reduce over axes
  kMatmul,
  kAttention,
  kQuantize,   // f32 rows to q8_0 or q8_K
  kUpdate,     // Update: a copy of operand 0 with a part replaced; in place when donated
  kComposite,  // a name for a sub-graph: `expand` gives it; never reaches code generation
  kRegion,
};

enum class OperandKind : uint8_t {
  kAny,
  kNumeric,
  kFloat,
  kInteger,
  kIndex /* i32 or i64 */,
  kBool,
  kIntegerOrBool,
  kWeight /* floats or a block format */,
  kActivation /* f32, f16, bf16, f64, or q8_0, q8_K */,
};

// Whether an operand of that kind may have that dtype.
bool Accepts(OperandKind kind, DType dtype);

struct OperandDef {
  const char* name;
  OperandKind kind = OperandKind::kAny;
  bool optional = false;   // trailing operands only
  bool variadic = false;   // the last operand only: one or more
  bool own_dtype = false;  // need not have the dtype of the other operands
};

struct AttrDef {
  const char* name;
  AttrKind kind;
  std::optional<AttrValue> default_value = std::nullopt;  // none: required
  const char* doc = "";
  std::vector<const char*> choices = {};  // kString: the allowed values, if limited
};

// What `infer` sees.
struct InferContext {
  std::span<const TensorType> operands;
  const Attributes& attributes;
  const SymbolRanges& symbols;
  std::vector<ExtentConstraint>* constraints;
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

// A tensor of the double interpreter: concrete sizes, every element a double (bool 0/1; block formats decoded).
struct RefTensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> dims;
  std::vector<double> data;  // row-major

  int64_t elements() const;
  // The element at the right-aligned broadcast of `index`: extents of 1 stretch, leading dimensions drop.
  double At(std::span<const int64_t> index) const;
};

// `index` advanced to the next element in row-major order (back to zeros after the last).
void NextIndex(std::span<const int64_t> dims, std::span<int64_t> index);
// The value that `dtype` stores for `value`: halves round to nearest even, integers wrap; f32 stays exact on purpose.
double RoundTo(DType dtype, double value);

// What `reference` sees.
struct RefContext {
  const Node& node;
  std::span<const RefTensor* const> operands;  // null for an absent optional operand
  const Binding& binding;                      // for extents in attributes
  std::vector<RefTensor>& results;             // sized by inference, zero-filled; to be written
};

struct OpDef {
  const char* name;
  const char* doc;
  Family family;
  std::vector<OperandDef> operands = {};
  std::vector<AttrDef> attributes = {};

  // Result types. Operand count, dtypes and attribute kinds have been checked.
  StatusOr<std::vector<TensorType>> (*infer)(const InferContext&);
  // kElementwise, kIndex: the result element at ctx.index().
  kir::ExprRef (*map)(MapContext& context) = nullptr;
  // The meaning stated a second time in plain double arithmetic, sharing nothing with `map`.
  Status (*reference)(RefContext&) = nullptr;
  // kComposite: the sub-graph; returns the values that take the place of the results.
  StatusOr<std::vector<Value>> (*expand)(Graph& graph, const Node& node, std::span<const Value> inputs,
                                         int origin) = nullptr;

  // Numeric contract of a kernel against `reference` in double, per element: relative to the magnitude the op names.
  double rtol = 1e-6;
  double atol = 1e-6;
  const char* onnx = nullptr;
  // Operand values for random tests: every float operand is drawn from [low, high].
  double sample_low = -4, sample_high = 4;
};

// Every op, sorted by name. Thread-safe, immutable.
std::span<const OpDef* const> Ops();
// The op named `name`, or null.
const OpDef* FindOp(std::string_view name);

// ---------------------------------------------------------------------------------------------------------------------
// Factories for the common shapes of op files. The returned OpDef lives forever.

using Args = std::span<const kir::ExprRef>;

struct ElementwiseSpec {
  const char* name;
  const char* doc;
  int arity = 1;
  OperandKind domain = OperandKind::kFloat;
  kir::ExprRef (*body)(Args args);  // f16 and bf16 operands arrive widened to f32
  double (*reference)(double a, double b, double c);
  double (*integer_reference)(double a, double b, double c) = nullptr;  // where integers differ: Div, Mod
  std::optional<DType> result_dtype = std::nullopt;  // bool for comparisons. Default: the last operand's dtype
  bool first_is_condition = false;                   // Where: operand 0 is bool
  double rtol = 1e-6, atol = 1e-6;
  const char* onnx = nullptr;
  double sample_low = -4, sample_high = 4;
};
const OpDef* Elementwise(const ElementwiseSpec& spec);
// The literal `value` in the dtype of `like`.
kir::ExprRef Like(const kir::ExprRef& like, double value);

// The operand's value at the broadcast of the result index: what elementwise ops read.
kir::ExprRef BroadcastOperand(MapContext& context, int operand);

}  // namespace quern::ir
