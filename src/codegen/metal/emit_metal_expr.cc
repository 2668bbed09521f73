// Expressions. Operators with one meaning in MSL and KIR are written as such; the rest call a helper of the prelude, named by
// operator and dtype ("add_i32", "mod_f32"). Floats below f64 are held as float and rounded where they are stored or cast.
#include <algorithm>
#include <cmath>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "codegen/metal/emitter.h"

namespace quern::metal {
namespace {

using kir::Op;

// The function of floats; the helper of integers, or of floats where there is none. Infix tokens are the same in both languages,
// and what is not here has no other name. precise:: holds where a host compiles with fast math after all.
struct OperatorText {
  Op op;
  const char* helper;
  const char* function;
};
constexpr OperatorText kOperators[] = {
    {Op::kNeg, "neg", nullptr},
    {Op::kAbs, "abs", "fabs"},
    {Op::kNot, "not", nullptr},
    {Op::kRound, nullptr, "rint"},
    {Op::kExp, nullptr, "precise::exp"},
    {Op::kExp2, nullptr, "precise::exp2"},
    {Op::kLog, nullptr, "precise::log"},
    {Op::kLog2, nullptr, "precise::log2"},
    {Op::kSin, nullptr, "precise::sin"},
    {Op::kCos, nullptr, "precise::cos"},
    {Op::kTan, nullptr, "precise::tan"},
    {Op::kAtan, nullptr, "precise::atan"},
    {Op::kTanh, nullptr, "precise::tanh"},
    {Op::kErf, "erf", nullptr},
    {Op::kSqrt, nullptr, "precise::sqrt"},
    {Op::kRsqrt, "rsqrt", nullptr},
    {Op::kSigmoid, "sigmoid", nullptr},
    {Op::kAdd, "add", nullptr},
    {Op::kSub, "sub", nullptr},
    {Op::kMul, "mul", nullptr},
    {Op::kDiv, "div", nullptr},
    {Op::kMod, "mod", nullptr},
    {Op::kMin, "min", nullptr},
    {Op::kMax, "max", nullptr},
    {Op::kShl, "shl", nullptr},
    {Op::kShr, "shr", nullptr},
    {Op::kPow, nullptr, "precise::pow"},
    {Op::kAtan2, nullptr, "precise::atan2"},
};

std::string FunctionName(Op op, DType dtype) {
  OperatorText text{op, nullptr, Row(op).name};
  for (const OperatorText& row : kOperators) text = row.op == op ? row : text;
  if (IsFloat(dtype) && text.function != nullptr) return text.function;
  return absl::StrCat(text.helper, "_", IsFloat(dtype) ? "f32" : Row(dtype).name);
}

bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

// Whether the value is one that its dtype holds, without rounding first.
bool IsRounded(const kir::Expr& expr) {
  return !std::holds_alternative<kir::Apply>(expr.node) && !std::holds_alternative<kir::NameRef>(expr.node) &&
         !std::holds_alternative<kir::Reduce>(expr.node);
}

const kir::Apply* ContractedProduct(const kir::ExprRef& expr) {
  const auto* apply = std::get_if<kir::Apply>(&expr->node);
  return apply != nullptr && apply->op == Op::kMul && apply->contract && IsFloat(expr->dtype) ? apply : nullptr;
}

}  // namespace

const char* Emitter::Type(DType dtype) {
  if (dtype == DType::kF64) Unimplemented("f64, which no GPU of Apple has");
  if (dtype == DType::kBool) return "bool";
  return IsFloat(dtype) ? "float" : MemoryType(dtype);
}

Code Emitter::Literal(DType dtype, const kir::Const& constant) {
  if (dtype == DType::kBool) return {constant.integer != 0 ? "true" : "false"};
  if (IsUnsigned(dtype)) return {absl::StrCat(static_cast<uint64_t>(constant.integer), dtype == DType::kU64 ? "UL" : "U")};
  if (!IsFloat(dtype)) return Number(constant.integer);
  if (dtype == DType::kF64) Type(dtype);
  const double real = static_cast<float>(constant.real);
  if (std::isnan(real)) return {"NAN"};
  if (std::isinf(real)) return {real < 0 ? "-INFINITY" : "INFINITY", real < 0 ? Level::kPrefix : Level::kAtom};
  std::string text;
  for (int digits = 1; digits <= 9; ++digits) {  // the shortest that reads back
    text = absl::StrFormat("%.*g", digits, real);
    if (std::strtof(text.c_str(), nullptr) == static_cast<float>(real)) break;
  }
  if (text.find_first_of(".e") == std::string::npos) absl::StrAppend(&text, ".0");
  return {text + "f", text[0] == '-' ? Level::kPrefix : Level::kAtom};
}

std::vector<Code> Emitter::Values(const std::vector<kir::ExprRef>& exprs) {
  std::vector<Code> values;
  for (const kir::ExprRef& expr : exprs) values.push_back(Value(expr));
  return values;
}

Code Emitter::Value(const kir::ExprRef& expr) {
  if (!status_.ok()) return Number(0);
  if (const auto* constant = std::get_if<kir::Const>(&expr->node)) return Literal(expr->dtype, *constant);
  if (const auto* name = std::get_if<kir::NameRef>(&expr->node)) {
    const Entity* entity = Find(name->name);
    if (entity == nullptr) return Number(0);
    if (!entity->staged.empty()) return {entity->staged};
    return entity->scalar ? *entity->scalar : Element(*entity->view, entity->element);
  }
  if (const auto* decode = std::get_if<kir::Decode>(&expr->node)) return Element(FindView(decode->buffer), Values(decode->index));
  if (const auto* apply = std::get_if<kir::Apply>(&expr->node)) return Operator(*apply);
  if (const auto* cast = std::get_if<kir::Cast>(&expr->node)) return Conversion(cast->value->dtype, expr->dtype, cast->value);
  if (const auto* bits = std::get_if<kir::Bits>(&expr->node)) {
    return Reinterpretation(bits->value->dtype, expr->dtype, Value(bits->value));
  }
  if (const auto* reduce = std::get_if<kir::Reduce>(&expr->node)) return Reduction(*reduce, expr->dtype);
  const auto& load = std::get<kir::Load>(expr->node);
  const View view = FindView(load.buffer);
  const std::vector<Code> index = Values(load.index);
  const Code element = Element(view, index);
  if (load.otherwise == nullptr || index.empty()) return element;
  return Conditional(Inside(index, view.sizes), element, Value(load.otherwise));
}

Code Emitter::Inside(const std::vector<Code>& index, const std::vector<Code>& sizes) {
  std::string inside;
  for (size_t d = 0; d < index.size() && d < sizes.size(); ++d) {
    absl::StrAppend(&inside, d == 0 ? "" : " && ", CallText("inside", {index[d].text, sizes[d].text}));
  }
  return {inside};
}

Code Emitter::Operator(const kir::Apply& apply) {
  if (std::optional<Code> fused = Fused(apply)) return *fused;
  const std::vector<Code> args = Values(apply.args);
  const DType dtype = apply.args.back()->dtype;
  const kir::OpRow& row = Row(apply.op);
  if (apply.op == Op::kSelect) return Conditional(args[0], args[1], args[2]);
  const bool comparison = apply.op == Op::kEq || apply.op == Op::kNe || apply.op == Op::kLt || apply.op == Op::kLe;
  const bool bitwise = row.domain == kir::OpDomain::kBitwise && row.arity == 2;
  const bool arithmetic = IsFloat(dtype) && row.syntax == kir::OpSyntax::kInfix && apply.op != Op::kMod;
  if (comparison || bitwise || arithmetic) {
    const bool sum = apply.op == Op::kAdd || apply.op == Op::kSub;
    return Infix(row.name, !arithmetic || comparison ? Level::kOther : sum ? Level::kSum : Level::kProduct, args[0], args[1]);
  }
  if (row.syntax == kir::OpSyntax::kPrefix && (IsFloat(dtype) || dtype == DType::kBool)) {
    return {absl::StrCat(row.name, Wrapped(args[0], Level::kAtom)), Level::kPrefix};
  }
  if (dtype == DType::kI64 && args.size() == 2) return IndexOperator(apply.op, args[0], args[1]);
  std::vector<std::string> texts;
  for (const Code& arg : args) texts.push_back(arg.text);
  return {CallText(FunctionName(apply.op, dtype), texts)};
}

std::optional<Code> Emitter::Fused(const kir::Apply& apply) {
  if ((apply.op != Op::kAdd && apply.op != Op::kSub) || !apply.contract || !IsFloat(apply.args[0]->dtype)) return std::nullopt;
  const bool minus = apply.op == Op::kSub;
  const bool second = ContractedProduct(apply.args[0]) == nullptr;
  const kir::Apply* product = ContractedProduct(apply.args[second ? 1 : 0]);
  if (product == nullptr) return std::nullopt;
  auto negated = [](const Code& code) { return absl::StrCat("-", Wrapped(code, Level::kAtom)); };
  const Code other = Value(apply.args[second ? 0 : 1]), a = Value(product->args[0]), b = Value(product->args[1]);
  return Code{CallText("fma", {minus && second ? negated(a) : a.text, b.text, minus && !second ? negated(other) : other.text})};
}

// i64, where bounds of the operands often prove that nothing overflows.
Code Emitter::IndexOperator(Op op, const Code& a, const Code& b) {
  if (a.literal && b.literal) return Number(EvalInteger(op, DType::kI64, *a.literal, *b.literal, 0));
  if (op == Op::kAdd || op == Op::kSub || op == Op::kMul) {
    const Code plain = op == Op::kAdd ? Sum(a, b) : op == Op::kSub ? Difference(a, b) : Product(a, b);
    if (plain.low > -0x1p62 && plain.high < 0x1p62) return plain;
  }
  const bool narrow = a.narrow && b.narrow;
  if (op == Op::kMin || op == Op::kMax) {
    const bool min = op == Op::kMin;
    Code call{CallText(FunctionName(op, narrow ? DType::kI32 : DType::kI64), {a.text, b.text})};
    call.low = min ? std::min(a.low, b.low) : std::max(a.low, b.low);
    call.high = min ? std::min(a.high, b.high) : std::max(a.high, b.high);
    call.narrow = narrow;
    call.multiple = std::min(a.multiple, b.multiple);
    return call;
  }
  Code call{CallText(FunctionName(op, DType::kI64), {a.text, b.text})};
  if (!b.literal || *b.literal < 1) return call;
  if (op == Op::kDiv) {
    if (*b.literal == 1) return a;
    return Bounded(Infix("/", Level::kProduct, a, b), std::trunc(a.low / b.low), std::trunc(a.high / b.low));
  }
  if (op == Op::kMod) {
    if (a.low >= 0 && a.high < b.low) return a;
    if (a.low >= 0) call = Infix("%", Level::kProduct, a, b);
    return Bounded(call, 0, b.high - 1);
  }
  return call;
}

Code Emitter::Least(const Code& a, const Code& b) {
  if (a.high <= b.low) return a;
  return b.high <= a.low ? b : IndexOperator(Op::kMin, a, b);
}

Code Emitter::Reduction(const kir::Reduce& reduce, DType dtype) {
  const Code low = Value(reduce.low), high = Value(reduce.high);
  const bool sum = reduce.op == kir::ReduceOp::kSum;
  Code identity;
  if (IsFloat(dtype)) {
    identity = Literal(dtype, {.real = Identity(reduce.op)});
  } else if (sum || reduce.op == kir::ReduceOp::kProd) {
    identity = Number(static_cast<int64_t>(Identity(reduce.op)));
  } else {
    const int bits = 8 * ScalarBytes(dtype);
    const bool max = reduce.op == kir::ReduceOp::kMax, is_unsigned = IsUnsigned(dtype);
    const int64_t most = bits == 64 ? (is_unsigned ? -1 : INT64_MAX) : (int64_t{1} << (is_unsigned ? bits : bits - 1)) - 1;
    identity = Literal(dtype, {.integer = !max ? most : is_unsigned ? 0 : -most - 1});
  }
  const std::string total = Fresh(Name(reduce.op));
  Line(absl::StrCat(Type(dtype), " ", total, " = ", identity.text, ";"));
  const Mark mark = Enter();
  BeginLoop(reduce.index, low, high, 1);
  const kir::Apply* product = sum ? ContractedProduct(reduce.body) : nullptr;
  if (product != nullptr) {
    const std::vector<Code> factors = Values(product->args);
    Line(absl::StrCat(total, " = ", CallText("fma", {factors[0].text, factors[1].text, total}), ";"));
  } else if (IsFloat(dtype) && (sum || reduce.op == kir::ReduceOp::kProd)) {
    const Code term = Value(reduce.body);
    Line(absl::StrCat(total, sum ? " += " : " *= ", term.text, ";"));
  } else {
    const Code term = Value(reduce.body);
    Line(absl::StrCat(total, " = ", CallText(FunctionName(CombineOp(reduce.op), dtype), {total, term.text}), ";"));
  }
  EndLoop(mark);
  return {total};
}

Code Emitter::Conversion(DType from, DType to, const kir::ExprRef& expr) {
  Code value = Value(expr);
  Type(to), Type(from);  // there is no f64
  if (to == DType::kBool) return Infix("!=", Level::kOther, value, {"0"});
  auto rounded = [](DType dtype, const Code& code) -> Code {
    return IsHalf(dtype) ? Code{CallText(absl::StrCat("round_", Row(dtype).name), {code.text})} : code;
  };
  // A narrow float that an operator made is rounded to its dtype first.
  if (IsFloat(from) && !IsRounded(*expr)) value = rounded(from, value);
  if (IsFloat(from) && !IsFloat(to)) return {CallText(absl::StrCat("saturate_", Row(to).name), {value.text})};
  if (IsFloat(from)) return from == to ? value : rounded(to, value);
  const bool from_unsigned = IsUnsigned(from) || from == DType::kBool;
  const int bits = from == DType::kBool ? 1 : 8 * ScalarBytes(from);
  if (IsFloat(to)) {
    // The language may round an integer toward zero; those of 24 bits are exact. Rounding to odd first keeps the second rounding,
    // to bf16, right.
    const bool exact = bits <= 16 || (from == DType::kI64 && value.low >= -0x1p24 && value.high <= 0x1p24);
    const char* const name = to == DType::kBF16 ? (from_unsigned ? "odd_u64" : "odd_i64") : from_unsigned ? "float_u64" : "float_i64";
    return rounded(to, {CallText(exact ? "float" : name, {value.text})});
  }
  if (from == to) return value;
  if (to != DType::kI64) return {CallText(Type(to), {value.text})};
  // The values of i8 to i32, u8, u16 and bool fit an int.
  const bool narrow = bits < 32 || (bits == 32 && !from_unsigned);
  Code wide{CallText(narrow ? "int" : "long", {value.text})};
  if (bits < 64) wide.high = std::ldexp(1.0, from_unsigned ? bits : bits - 1) - 1, wide.low = from_unsigned ? 0 : -wide.high - 1;
  wide.narrow = narrow;
  return wide;
}

Code Emitter::Reinterpretation(DType from, DType to, const Code& value) {
  Type(to), Type(from);
  if (from == to && !IsFloat(from)) return value;
  Code bits = from == DType::kI64 ? Wide(value) : value;
  if (IsFloat(from)) bits = {CallText(absl::StrCat("bits_of_", Row(from).name), {value.text})};
  if (IsFloat(to)) return {CallText(absl::StrCat("from_bits_", Row(to).name), {bits.text})};
  if (to == DType::kBool) return Infix("!=", Level::kOther, Infix("&", Level::kOther, bits, {"1"}), {"0"});
  return {CallText(Type(to), {bits.text})};
}

// Memory

Code Emitter::Position(const View& view, const std::vector<Code>& index) {
  Code position = Number(0);
  const size_t dims = index.size() - (IsBlock(view.dtype) ? 1 : 0);
  for (size_t d = 0; d < dims; ++d) position = Sum(position, Product(index[d], view.strides[d]));
  return position;
}

std::string Emitter::Target(const View& view, const std::vector<Code>& index) {
  if (index.size() != view.sizes.size()) Fail(absl::StrCat(view.pointer, " has another rank"));
  return status_.ok() ? absl::StrCat(view.pointer, "[", Position(view, index).text, "]") : "";
}

Code Emitter::FromMemory(DType dtype, const std::string& place) const {
  if (dtype == DType::kBool) return Infix("!=", Level::kOther, {place}, {"0"});
  return {IsHalf(dtype) ? CallText("float", {place}) : place};
}

std::string Emitter::ToMemory(DType dtype, const Code& value) const {
  if (dtype == DType::kF16) return CallText("half", {value.text});
  return dtype == DType::kBF16 ? CallText("to_bf16", {value.text}) : value.text;
}

Code Emitter::Element(const View& view, const std::vector<Code>& index) {
  if (view.place == Place::kDevice && view.writable) reads_back_ = true;
  if (index.size() != view.sizes.size()) Fail(absl::StrCat(view.pointer, " has another rank"));
  if (view.place == Place::kMatrices) Unimplemented("an element of a warp's tile other than the current one of a map");
  if (!status_.ok()) return Number(0);
  if (!IsBlock(view.dtype)) return FromMemory(view.dtype, Target(view, index));
  const Code bytes = Product(Position(view, index), Number(RowBytes(view.dtype, view.row_elements)));
  return {CallText(absl::StrCat("decode_", Row(view.dtype).name),
                   {bytes.literal == 0 ? view.pointer : absl::StrCat(view.pointer, " + ", Wrapped(bytes, Level::kProduct)),
                    CallText("uint", {index.back().text})})};
}

}  // namespace quern::metal
