// What is checked of every op before its own `infer`, operand count and dtypes, attribute names, kinds and choices, and
// how an op words its errors.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/block_format.h"
#include "base/check.h"
#include "base/diagnostic.h"
#include "base/nearest.h"
#include "ir/op.h"
#include "ir/product.h"

namespace quern::ir {
namespace {

// In the order of AttrKind.
constexpr const char* kAttrKinds[] = {"a bool",  "an int",         "a float",          "a string",
                                      "a dtype", "a list of ints", "a list of extents"};

// "2", "2 to 3", "1 or more".
std::string CountText(size_t least, size_t most) {
  if (least == most) return absl::StrCat(least);
  if (most == SIZE_MAX) return absl::StrCat(least, " or more");
  return absl::StrCat(least, " to ", most);
}

}  // namespace

const char* Phrase(OperandKind kind) {
  switch (kind) {
    case OperandKind::kAny: return "any scalar dtype but c64";
    case OperandKind::kNumeric: return "a number";
    case OperandKind::kFloat: return "a float";
    case OperandKind::kInteger: return "an integer";
    case OperandKind::kIndex: return "i32 or i64";
    case OperandKind::kBool: return "bool";
    case OperandKind::kIntegerOrBool: return "an integer or bool";
    case OperandKind::kWeight: return "a float or a Param of a block format";
    case OperandKind::kActivation: return "a float or what Quantize gives";
    case OperandKind::kLeftSide: return "a float, i8, u8, i32, i64 or what Quantize gives";
    case OperandKind::kRightSide: return "a float, i8, u8, i32, i64 or a Param of a block format";
    case OperandKind::kTable: return "any scalar dtype or a Param of a block format";
  }
  QUERN_CHECK(false);
}

bool Accepts(OperandKind kind, DType dtype) {
  switch (kind) {
    case OperandKind::kAny: return !IsBlock(dtype) && !IsComplex(dtype);
    case OperandKind::kNumeric: return IsFloat(dtype) || IsInteger(dtype);
    case OperandKind::kFloat: return IsFloat(dtype);
    case OperandKind::kInteger: return IsInteger(dtype);
    case OperandKind::kIndex: return dtype == DType::kI32 || dtype == DType::kI64;
    case OperandKind::kBool: return dtype == DType::kBool;
    case OperandKind::kIntegerOrBool: return IsInteger(dtype) || dtype == DType::kBool;
    case OperandKind::kWeight: return IsFloat(dtype) || IsBlock(dtype);
    case OperandKind::kActivation: return IsFloat(dtype) || (IsBlock(dtype) && FormatOf(dtype).sums > 0);
    case OperandKind::kLeftSide: return Accepts(OperandKind::kActivation, dtype) || Multiplies(dtype, dtype);
    case OperandKind::kRightSide: return Accepts(OperandKind::kWeight, dtype) || Multiplies(dtype, dtype);
    case OperandKind::kTable: return IsBlock(dtype) || Accepts(OperandKind::kAny, dtype);
  }
  QUERN_CHECK(false);
}

bool Accepts(const OpDef& op, const OperandDef& operand, DType dtype) {
  if (!IsComplex(dtype)) return Accepts(operand.kind, dtype);
  // What loops carry, and ops that say what they make of pairs.
  return (op.pairs != nullptr || op.kind == OpKind::kControl) && Accepts(operand.kind, DType::kF32);
}

std::string OperandName(const OpDef& op, size_t operand) {
  if (op.operands.empty()) return absl::StrCat("operand ", operand);
  const OperandDef& def = op.operands[std::min(operand, op.operands.size() - 1)];
  return def.variadic || operand >= op.operands.size() ? absl::StrCat(def.name, "[", operand, "]") : def.name;
}

bool IsActivation(std::string_view name) {
  const OpDef* op = FindOp(name);
  if (op == nullptr || op->kind != OpKind::kElementwise || op->operands.size() != 1) return false;
  const TensorType x{DType::kF32, {}};
  Attributes defaults;
  std::vector<ExtentConstraint> none;
  const StatusOr<std::vector<TensorType>> results = InferResults(*op, {&x, 1}, defaults, {}, &none);
  return results.ok() && (*results)[0] == x;
}

std::string NearestOp(std::string_view name) {
  std::vector<std::string_view> names;
  for (const OpDef* op : Ops()) {
    if (op->kind != OpKind::kLeaf && op->kind != OpKind::kRegion) names.emplace_back(op->name);
  }
  return Nearest(name, names);
}

Status UnknownOp(std::string_view name) {
  return ToStatus({DiagnosticCode::kUnknownOp, std::string(name), "", "", "", "", NearestOp(name)});
}

Status CheckOperands(const OpDef& op, std::span<const TensorType> operands) {
  size_t least = 0;
  bool variadic = false;
  for (const OperandDef& def : op.operands) {
    if (!def.optional) ++least;
    variadic |= def.variadic;
  }
  const size_t most = variadic ? SIZE_MAX : op.operands.size();
  if (operands.size() < least || operands.size() > most) {
    return ToStatus(
        {DiagnosticCode::kInputCount, op.name, "", CountText(least, most), absl::StrCat(operands.size()), ""});
  }
  std::optional<DType> shared;
  for (size_t i = 0; i < operands.size(); ++i) {
    const OperandDef& def = op.operands[std::min(i, op.operands.size() - 1)];
    const DType dtype = operands[i].dtype;
    auto mismatch = [&](std::string_view expected) {
      return ToStatus({DiagnosticCode::kDTypeMismatch, op.name, OperandName(op, i), std::string(expected),
                       std::string(Name(dtype)), ""});
    };
    if (!Accepts(op, def, dtype) && IsBlock(dtype)) {
      return ToStatus(
          {DiagnosticCode::kUnsupported, op.name, OperandName(op, i), Phrase(def.kind), operands[i].ToString(), ""});
    }
    if (!Accepts(op, def, dtype)) return mismatch(Phrase(def.kind));
    if (def.own_dtype) continue;
    if (shared && *shared != dtype) return mismatch(Name(*shared));
    shared = dtype;
  }
  return absl::OkStatus();
}

namespace {

// `rows`: of each Input of the graph, whether it is a Param outside.
Status CheckStorageOf(const Graph& graph, const std::vector<bool>& rows) {
  std::vector<bool> lies_in_rows(graph.nodes().size());
  auto refuse = [&](std::string op, std::string operand, OperandKind kind, const TensorType& type) {
    return ToStatus(
        {DiagnosticCode::kUnsupported, std::move(op), std::move(operand), Phrase(kind), type.ToString(), ""});
  };
  size_t input = 0;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (IsInput(node)) {
      lies_in_rows[n] = input < rows.size() && rows[input];
      ++input;
      if (!lies_in_rows[n] && IsBlock(node.results[0].dtype) &&
          !Accepts(OperandKind::kActivation, node.results[0].dtype)) {
        return refuse(node.op->name, node.attributes.String("name"), OperandKind::kAny, node.results[0]);
      }
    } else if (IsParam(node)) {
      lies_in_rows[n] = true;
    } else if (!node.bodies.empty()) {
      // Steps take no operands of block formats.
      std::vector<bool> inner;
      for (const Value& value : node.inputs)
        inner.push_back(node.op->kind == OpKind::kRegion && lies_in_rows[value.node]);
      for (const auto& body : node.bodies) QUERN_RETURN_IF_ERROR(CheckStorageOf(*body, inner));
    } else {
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const TensorType& type = graph.type(node.inputs[i]);
        const OperandKind kind = node.op->operands[std::min(i, node.op->operands.size() - 1)].kind;
        if (IsBlock(type.dtype) && lies_in_rows[node.inputs[i].node] != TakesRows(kind))
          return refuse(node.op->name, OperandName(*node.op, i), kind, type);
      }
    }
  }
  for (const Value& output : graph.outputs) {
    const TensorType& type = graph.type(output);
    if (IsBlock(type.dtype) && lies_in_rows[output.node]) return refuse("Output", "value", OperandKind::kAny, type);
  }
  return absl::OkStatus();
}

}  // namespace

Status CheckStorage(const Graph& graph) { return CheckStorageOf(graph, {}); }

namespace {

// A number where a list is asked for.
void ListOfOne(const AttrDef& def, Attributes& attributes) {
  const AttrValue* const value = attributes.Find(def.name);
  const int64_t* const number = value == nullptr ? nullptr : std::get_if<int64_t>(value);
  if (number == nullptr) return;
  const int64_t one = *number;
  if (def.kind == AttrKind::kInts) attributes.Set(def.name, std::vector<int64_t>{one});
  if (def.kind == AttrKind::kExtents) attributes.Set(def.name, std::vector<Extent>{one});
}

}  // namespace

Status CheckAttributes(const char* owner, std::span<const AttrDef> defs, Attributes& attributes, bool fill_defaults) {
  auto bad = [&](std::string_view name, std::string expected, std::string got, std::string suggestion = "") {
    return ToStatus({DiagnosticCode::kBadAttribute, owner, std::string(name), std::move(expected), std::move(got), "",
                     std::move(suggestion)});
  };
  for (const auto& [name, value] : attributes.values()) {
    std::vector<std::string_view> known;
    for (const AttrDef& def : defs) known.emplace_back(def.name);
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return bad(name, known.empty() ? "no attribute" : absl::StrCat("one of ", NamesText(known)), "unknown",
               Nearest(name, known));
  }
  for (const AttrDef& def : defs) {
    if (fill_defaults) ListOfOne(def, attributes);
    const AttrValue* value = attributes.Find(def.name);
    const char* kind = kAttrKinds[static_cast<size_t>(def.kind)];
    if (def.rare && (value == nullptr || *value == *def.default_value)) {
      if (fill_defaults) attributes.Erase(def.name);
    } else if (value == nullptr) {
      if (!def.default_value || !fill_defaults) return bad(def.name, kind, "absent");
      attributes.Set(def.name, *def.default_value);
    } else if (value->index() != static_cast<size_t>(def.kind)) {
      return bad(def.name, kind, ToString(*value));
    } else if (const auto* extents = std::get_if<std::vector<Extent>>(value)) {
      const Status checked = CheckExtents(*extents);
      if (!checked.ok())
        return bad(def.name, std::string(checked.message()), absl::StrCat(extents->size(), " extents"));
    } else if (!def.choices.empty() &&
               std::find(def.choices.begin(), def.choices.end(), std::get<std::string>(*value)) == def.choices.end()) {
      return bad(def.name, absl::StrCat("one of ", absl::StrJoin(def.choices, ", ")), ToString(*value));
    }
  }
  return absl::OkStatus();
}

StatusOr<std::vector<TensorType>> InferResults(const OpDef& op, std::span<const TensorType> operands,
                                               Attributes& attributes, const SymbolRanges& symbols,
                                               std::vector<ExtentConstraint>* constraints,
                                               std::span<const std::shared_ptr<const Graph>> bodies,
                                               std::span<const TensorType> declared) {
  QUERN_RETURN_IF_ERROR(CheckOperands(op, operands));
  QUERN_RETURN_IF_ERROR(CheckAttributes(op.name, op.attributes, attributes, /*fill_defaults=*/true));
  QUERN_RETURN_IF_ERROR(CheckBodies(op, bodies, symbols));
  std::vector<ExtentConstraint> found;
  QUERN_ASSIGN(std::vector<TensorType> results,
               op.infer({op, operands, attributes, symbols, &found, bodies, declared}));
  for (const TensorType& result : results) {
    if (const Status fits = CheckExtents(result.dims); !fits.ok())
      return ToStatus({DiagnosticCode::kUnsupported, op.name, "", "", std::string(fits.message()), ""});
    if (IsComplex(result.dtype) && result.dims.size() >= kMostDims) {  // pairs are one dimension more
      return ToStatus({DiagnosticCode::kUnsupported, op.name, "",
                       absl::StrFormat("c64 of up to %u dimensions", kMostDims - 1), result.ToString(), ""});
    }
  }
  constraints->insert(constraints->end(), found.begin(), found.end());
  return results;
}

Status InferContext::Error(DiagnosticCode code, std::string operand, std::string expected, std::string got) const {
  return ToStatus({code, op.name, std::move(operand), std::move(expected), std::move(got), ""});
}

Status InferContext::ShapeError(int operand, std::string expected) const {
  return Error(DiagnosticCode::kShapeMismatch, OperandName(op, operand), std::move(expected),
               operands[operand].ToString());
}

Status InferContext::DTypeError(int operand, std::string expected) const {
  return Error(DiagnosticCode::kDTypeMismatch, OperandName(op, operand), std::move(expected),
               std::string(Name(operands[operand].dtype)));
}

Status InferContext::UnsupportedError(int operand, std::string supported) const {
  return Error(DiagnosticCode::kUnsupported, OperandName(op, operand), std::move(supported),
               operands[operand].ToString());
}

Status InferContext::AttributeError(std::string_view attribute, std::string expected) const {
  const AttrValue* const value = attributes.Find(attribute);
  return Error(DiagnosticCode::kBadAttribute, std::string(attribute), std::move(expected),
               value == nullptr ? "nothing" : ToString(*value));
}

bool InferContext::Need(ExtentConstraint constraint) const {
  // What is taken away stands on the other side: S >= L, not S - L >= 0.
  Extent more, less;
  const Extent difference = constraint.difference();
  for (const Extent::Term& term : difference.terms()) {
    if (term.coefficient > 0)
      more = more + Extent(term);
    else
      less = less - Extent(term);
  }
  constraint.left = std::move(more);
  constraint.right = std::move(less);
  if (constraint.Always(symbols)) return true;
  if (constraint.Never(symbols)) return false;
  if (std::find(constraints->begin(), constraints->end(), constraint) == constraints->end())
    constraints->push_back(std::move(constraint));
  return true;
}

bool InferContext::Equal(std::span<const Extent> left, std::span<const Extent> right) const {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [&](const Extent& a, const Extent& b) { return Equal(a, b); });
}

bool InferContext::BroadcastsTo(std::span<const Extent> dims, std::span<const Extent> full) const {
  if (dims.size() > full.size()) return false;
  const std::span<const Extent> last = full.last(dims.size());
  return std::equal(dims.begin(), dims.end(), last.begin(), last.end(),
                    [&](const Extent& a, const Extent& b) { return a == Extent(1) || Equal(b, a); });
}

StatusOr<std::vector<Extent>> InferContext::Broadcast(int operand, const std::vector<Extent>& dims) const {
  const size_t known = constraints->size();
  StatusOr<std::vector<Extent>> result = BroadcastDims(dims, operands[operand].dims, constraints);
  const bool never = std::any_of(constraints->begin() + static_cast<std::ptrdiff_t>(known), constraints->end(),
                                 [&](const ExtentConstraint& constraint) { return constraint.Never(symbols); });
  if (never || !result.ok()) return ShapeError(operand, absl::StrCat("extents that broadcast with ", ToString(dims)));
  return result;
}

}  // namespace quern::ir
