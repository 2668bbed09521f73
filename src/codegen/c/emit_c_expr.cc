// Expressions. Operators with one meaning in C and KIR are written as such; the rest call a helper of the prelude,
// named by operator and dtype ("add_i32", "mod_f32"). Floats below f64 are held as float, or as double when `wide`.
#include <algorithm>
#include <cmath>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "codegen/c/emitter.h"

namespace quern::c {
namespace {

using kir::Op;

// Operators whose names differ: the helper of the prelude that serves where C's own operator or libm does not, and the
// libm function of floats. Infix tokens are the same in both languages, and so are the names of the other functions.
struct OperatorText {
  Op op;
  const char* helper;
  const char* libm;
};
constexpr OperatorText kOperators[] = {
    {Op::kNeg, "neg", nullptr},    {Op::kAbs, "abs", "fabs"},      {Op::kNot, "not", nullptr},
    {Op::kRound, nullptr, "rint"}, {Op::kRsqrt, "rsqrt", nullptr}, {Op::kAdd, "add", nullptr},
    {Op::kSub, "sub", nullptr},    {Op::kMul, "mul", nullptr},     {Op::kSigmoid, "sigmoid", nullptr},
    {Op::kDiv, "div", nullptr},    {Op::kMod, "mod", nullptr},     {Op::kMin, "min", nullptr},
    {Op::kMax, "max", nullptr},    {Op::kShl, "shl", nullptr},     {Op::kShr, "shr", nullptr},
};

// "min_f32(a, b)" or "expf(a)": the operator as a call. `suffix`: of float helpers.
std::string FunctionName(Op op, DType dtype, const char* suffix) {
  OperatorText text{op, nullptr, Row(op).name};
  for (const OperatorText& row : kOperators) text = row.op == op ? row : text;
  if (!IsFloat(dtype)) return absl::StrCat(text.helper, "_", Row(dtype).name);
  if (text.libm == nullptr) return absl::StrCat(text.helper, "_", suffix);
  return absl::StrCat(text.libm, std::string_view(suffix) == "f32" ? "f" : "");
}

bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

// Whether the value is one that its dtype holds, without rounding first.
bool IsRounded(const kir::Expr& expr) {
  return !std::holds_alternative<kir::Apply>(expr.node) && !std::holds_alternative<kir::NameRef>(expr.node) &&
         !std::holds_alternative<kir::Reduce>(expr.node);
}

Code Infix(const char* symbol, Level level, const Code& a, const Code& b) {
  // Comparisons and bitwise operators nest in parentheses only: C's precedence among them surprises.
  const Level left = level == Level::kOther ? Level::kSum : level;
  const Level right = level == Level::kOther ? Level::kSum : static_cast<Level>(static_cast<int>(level) + 1);
  return {absl::StrCat(Wrapped(a, left), " ", symbol, " ", Wrapped(b, right)), level};
}

Code Conditional(const Code& condition, const Code& yes, const Code& no) {
  return {
      absl::StrCat(Wrapped(condition, Level::kSum), " ? ", Wrapped(yes, Level::kSum), " : ", Wrapped(no, Level::kSum)),
      Level::kOther};
}

Code Bounded(Code code, double low, double high) {
  code.low = low;
  code.high = high;
  return code;
}

}  // namespace

std::string Wrapped(const Code& code, Level level) {
  return code.level >= level ? code.text : absl::StrCat("(", code.text, ")");
}

std::string CallText(const std::string& name, const std::vector<std::string>& args) {
  return absl::StrCat(name, "(", absl::StrJoin(args, ", "), ")");
}

Code Number(int64_t value) {
  Code code{absl::StrCat(value), value < 0 ? Level::kPrefix : Level::kAtom, static_cast<double>(value),
            static_cast<double>(value), value};
  if (value != static_cast<int32_t>(value)) code.text = absl::StrCat("INT64_C(", value, ")");
  if (value == INT64_MIN) code.text = "INT64_MIN";
  return code;
}

Code Sum(const Code& a, const Code& b) {
  if (a.literal && b.literal) return Number(*a.literal + *b.literal);
  if (a.literal == 0 || b.literal == 0) return a.literal == 0 ? b : a;
  return Bounded(Infix("+", Level::kSum, a, b), a.low + b.low, a.high + b.high);
}

Code Difference(const Code& a, const Code& b) {
  if (a.literal && b.literal) return Number(*a.literal - *b.literal);
  if (b.literal == 0) return a;
  return Bounded(Infix("-", Level::kSum, a, b), a.low - b.high, a.high - b.low);
}

Code Product(const Code& a, const Code& b) {
  if (a.literal && b.literal) return Number(*a.literal * *b.literal);
  if (a.literal == 0 || b.literal == 0) return Number(0);
  if (a.literal == 1 || b.literal == 1) return a.literal == 1 ? b : a;
  const auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return Bounded(Infix("*", Level::kProduct, a, b), low, high);
}

const char* Emitter::Type(DType dtype) const {
  if (dtype == DType::kBool) return "bool";
  if (!IsFloat(dtype)) return MemoryType(dtype);
  return dtype == DType::kF64 || options_.wide ? "double" : "float";
}

const char* Emitter::Suffix(DType dtype) const { return dtype == DType::kF64 || options_.wide ? "f64" : "f32"; }

Code Emitter::Literal(DType dtype, const kir::Const& constant) {
  if (dtype == DType::kBool) return {constant.integer != 0 ? "true" : "false"};
  if (dtype == DType::kU64) return {absl::StrCat("UINT64_C(", static_cast<uint64_t>(constant.integer), ")")};
  if (!IsFloat(dtype)) return Number(constant.integer);
  const bool narrow = dtype != DType::kF64;
  const double real = narrow ? static_cast<float>(constant.real) : constant.real;
  if (std::isnan(real)) return {"NAN"};
  if (std::isinf(real)) return {real < 0 ? "-INFINITY" : "INFINITY", real < 0 ? Level::kPrefix : Level::kAtom};
  std::string text;
  for (int digits = 1; digits <= 17; ++digits) {  // the shortest that reads back
    text = absl::StrFormat("%.*g", digits, real);
    const double back = std::strtod(text.c_str(), nullptr);
    if (narrow && !options_.wide ? static_cast<float>(back) == real : back == real) break;
  }
  if (text.find_first_of(".e") == std::string::npos) absl::StrAppend(&text, ".0");
  return {absl::StrCat(text, narrow && !options_.wide ? "f" : ""), text[0] == '-' ? Level::kPrefix : Level::kAtom};
}

std::vector<Code> Emitter::Values(const std::vector<kir::ExprRef>& exprs) {
  std::vector<Code> values;
  for (const kir::ExprRef& expr : exprs) values.push_back(Value(expr));
  return values;
}

Code Emitter::Value(const kir::ExprRef& expr) {
  if (const auto* constant = std::get_if<kir::Const>(&expr->node)) return Literal(expr->dtype, *constant);
  if (const auto* name = std::get_if<kir::NameRef>(&expr->node)) {
    const Entity* entity = Find(name->name);
    if (entity == nullptr) return Number(0);
    return entity->scalar ? *entity->scalar : Element(*entity->view, entity->element);
  }
  if (const auto* decode = std::get_if<kir::Decode>(&expr->node)) {
    const View view = FindView(decode->buffer);
    return Element(view, Values(decode->index));
  }
  if (const auto* apply = std::get_if<kir::Apply>(&expr->node)) return Operator(*apply);
  if (const auto* cast = std::get_if<kir::Cast>(&expr->node))
    return Conversion(cast->value->dtype, expr->dtype, cast->value);
  if (const auto* bits = std::get_if<kir::Bits>(&expr->node)) {
    return Reinterpretation(bits->value->dtype, expr->dtype, Value(bits->value));
  }
  if (const auto* reduce = std::get_if<kir::Reduce>(&expr->node)) return Reduction(*reduce, expr->dtype);
  const auto& load = std::get<kir::Load>(expr->node);
  const View view = FindView(load.buffer);
  const std::vector<Code> index = Values(load.index);
  const Code element = Element(view, index);
  if (load.otherwise == nullptr || view.pointer.empty()) return element;
  std::string inside;
  for (size_t d = 0; d < index.size() && d < view.sizes.size(); ++d) {
    absl::StrAppend(&inside, d == 0 ? "" : " && ", CallText("inside", {index[d].text, view.sizes[d].text}));
  }
  if (inside.empty()) return element;
  return Conditional({inside}, element, Value(load.otherwise));
}

Code Emitter::Operator(const kir::Apply& apply) {
  const std::vector<Code> args = Values(apply.args);
  const DType dtype = apply.args.back()->dtype;
  const kir::OpRow& row = Row(apply.op);
  if (apply.op == Op::kSelect) return Conditional(args[0], args[1], args[2]);
  const bool comparison = apply.op == Op::kEq || apply.op == Op::kNe || apply.op == Op::kLt || apply.op == Op::kLe;
  const bool bitwise = row.domain == kir::OpDomain::kBitwise && row.arity == 2;
  const bool arithmetic = IsFloat(dtype) && row.syntax == kir::OpSyntax::kInfix && apply.op != Op::kMod;
  if (comparison || bitwise || arithmetic) {
    const bool sum = apply.op == Op::kAdd || apply.op == Op::kSub;
    return Infix(row.name,
                 !arithmetic || comparison ? Level::kOther
                 : sum                     ? Level::kSum
                                           : Level::kProduct,
                 args[0], args[1]);
  }
  if (row.syntax == kir::OpSyntax::kPrefix && (IsFloat(dtype) || dtype == DType::kBool)) {
    return {absl::StrCat(row.name, Wrapped(args[0], Level::kAtom)), Level::kPrefix};
  }
  if (dtype == DType::kI64 && args.size() == 2) return IndexOperator(apply.op, args[0], args[1]);
  auto join = [](std::string* out, const Code& arg) { absl::StrAppend(out, arg.text); };
  return {absl::StrCat(FunctionName(apply.op, dtype, Suffix(dtype)), "(", absl::StrJoin(args, ", ", join), ")")};
}

// i64, where bounds of the operands often prove that nothing overflows.
Code Emitter::IndexOperator(Op op, const Code& a, const Code& b) {
  if (a.literal && b.literal) return Number(EvalInteger(op, DType::kI64, *a.literal, *b.literal, 0));
  Code plain;
  if (op == Op::kAdd || op == Op::kSub || op == Op::kMul) {
    plain = op == Op::kAdd ? Sum(a, b) : op == Op::kSub ? Difference(a, b) : Product(a, b);
    if (plain.low > -0x1p62 && plain.high < 0x1p62) return plain;
  }
  Code call{CallText(FunctionName(op, DType::kI64, ""), {a.text, b.text})};
  if (op == Op::kMin) return Bounded(call, std::min(a.low, b.low), std::min(a.high, b.high));
  if (op == Op::kMax) return Bounded(call, std::max(a.low, b.low), std::max(a.high, b.high));
  if (!b.literal || *b.literal < 1) return call;
  if (op == Op::kDiv) {
    if (*b.literal == 1) return a;
    return Bounded(Infix("/", Level::kProduct, a, b), std::trunc(a.low / b.low), std::trunc(a.high / b.low));
  }
  if (op == Op::kMod) {
    if (a.low >= 0) call = Infix("%", Level::kProduct, a, b);
    return Bounded(call, 0, b.high - 1);
  }
  return call;
}

Code Emitter::Reduction(const kir::Reduce& reduce, DType dtype) {
  const Code low = Value(reduce.low), high = Value(reduce.high);
  Code identity;
  if (IsFloat(dtype)) {
    identity = Literal(dtype, {.real = Identity(reduce.op)});
  } else if (reduce.op == kir::ReduceOp::kSum || reduce.op == kir::ReduceOp::kProd) {
    identity = Number(static_cast<int64_t>(Identity(reduce.op)));
  } else {
    const std::string width = absl::StrCat(IsUnsigned(dtype) ? "UINT" : "INT", 8 * ScalarBytes(dtype));
    const bool max = reduce.op == kir::ReduceOp::kMax;
    identity = {max && IsUnsigned(dtype) ? "0" : absl::StrCat(width, max ? "_MIN" : "_MAX")};
  }
  const std::string total = Fresh(Name(reduce.op));
  Line(absl::StrCat(Type(dtype), " ", total, " = ", identity.text, ";"));
  const Mark mark = Enter();
  BeginLoop(reduce.index, low, high, 1);
  const Code term = Value(reduce.body);
  if (IsFloat(dtype) && (reduce.op == kir::ReduceOp::kSum || reduce.op == kir::ReduceOp::kProd)) {
    Line(absl::StrCat(total, reduce.op == kir::ReduceOp::kSum ? " += " : " *= ", term.text, ";"));
  } else {
    Line(absl::StrCat(total, " = ",
                      CallText(FunctionName(CombineOp(reduce.op), dtype, Suffix(dtype)), {total, term.text}), ";"));
  }
  EndLoop(mark);
  return {total};
}

Code Emitter::Conversion(DType from, DType to, const kir::ExprRef& expr) {
  Code value = Value(expr);
  if (to == DType::kBool) return Infix("!=", Level::kOther, value, {"0"});
  // A narrow float that an operator made is rounded to its dtype first; float itself rounds by being float.
  auto rounded = [&](DType dtype, const Code& code) -> Code {
    if (!IsHalf(dtype) && (dtype != DType::kF32 || !options_.wide)) return code;
    return {CallText(absl::StrCat("round_", Row(dtype).name), {code.text})};
  };
  if (IsFloat(from) && !IsRounded(*expr)) value = rounded(from, value);
  if (IsFloat(from) && !IsFloat(to)) return {CallText(absl::StrCat("saturate_", Row(to).name), {value.text})};
  if (IsFloat(to) && (IsHalf(to) || (to == DType::kF32 && options_.wide))) {
    if (from == to) return value;
    // Integers become f32 in one step: by way of double, 64 bits would round twice.
    if (IsFloat(from) || IsHalf(to)) return rounded(to, value);
    return {absl::StrCat("(double)(float)", Wrapped(value, Level::kPrefix)), Level::kPrefix};
  }
  if (Type(from) == std::string_view(Type(to))) return value;
  if (to == DType::kI64 && from != DType::kU64 && !IsFloat(from)) {
    const bool is_unsigned = IsUnsigned(from) || from == DType::kBool;
    const int bits = from == DType::kBool ? 1 : 8 * ScalarBytes(from);
    value.high = std::ldexp(1.0, is_unsigned ? bits : bits - 1) - 1;
    value.low = is_unsigned ? 0 : -value.high - 1;
  }
  return Bounded({absl::StrCat("(", Type(to), ")", Wrapped(value, Level::kPrefix)), Level::kPrefix}, value.low,
                 value.high);
}

Code Emitter::Reinterpretation(DType from, DType to, const Code& value) {
  if (from == to && !IsFloat(from)) return value;
  Code bits = value;
  if (IsFloat(from)) bits = {CallText(absl::StrCat("bits_of_", Row(from).name), {value.text})};
  if (IsFloat(to)) return {CallText(absl::StrCat("from_bits_", Row(to).name), {bits.text})};
  if (to == DType::kBool) return Infix("!=", Level::kOther, Infix("&", Level::kOther, bits, {"1"}), {"0"});
  return {absl::StrCat("(", Type(to), ")", Wrapped(bits, Level::kPrefix)), Level::kPrefix};
}

// Memory

Code Emitter::Position(const View& view, const std::vector<Code>& index, size_t dims) const {
  Code position = view.offset;
  for (size_t d = 0; d < dims && d < index.size(); ++d) position = Sum(position, Product(index[d], view.strides[d]));
  return position;
}

std::string Emitter::Target(const View& view, const std::vector<Code>& index) {
  if (view.layout == kir::Layout::kKn32 && index.size() == 2) {
    const Code column = Sum(view.column, index[1]);
    return absl::StrCat(view.pointer, "[", Sum(Product(column, Number(32)), Position(view, index, 1)).text, "]");
  }
  return absl::StrCat(view.pointer, "[", Position(view, index, index.size()).text, "]");
}

std::string Emitter::ToMemory(DType dtype, const Code& value) const {
  return IsHalf(dtype) ? CallText(absl::StrCat("bits_of_", Row(dtype).name), {value.text}) : value.text;
}

Code Emitter::Element(const View& view, const std::vector<Code>& index) {
  if (view.pointer.empty()) return {IsFloat(view.dtype) ? "0.0f" : "0"};
  if (index.size() != view.sizes.size()) {
    Fail(absl::StrCat(view.pointer, " has another rank"));
    return Number(0);
  }
  if (!IsBlock(view.dtype)) {
    const std::string target = Target(view, index);
    if (view.dtype == DType::kBool) return Infix("!=", Level::kOther, {target}, {"0"});
    if (IsHalf(view.dtype)) return {CallText(absl::StrCat("from_bits_", Row(view.dtype).name), {target})};
    // The product of two floats must not be one of floats.
    if (view.dtype == DType::kF32 && options_.wide) return {absl::StrCat("(double)", target), Level::kPrefix};
    return {target};
  }
  QUERN_CHECK(!index.empty());
  const Code row = Position(view, index, index.size() - 1), column = Sum(view.column, index.back());
  const std::string format = Row(view.dtype).name, k = absl::StrCat(view.row_elements);
  if (view.layout == kir::Layout::kPanel16) {
    return {CallText(absl::StrCat("panel_", format), {view.pointer, k, row.text, column.text})};
  }
  const Code bytes = Number(kir::LayoutRowBytes(view.layout, view.dtype, view.row_elements));
  const Code at = Sum({view.pointer}, Product(row, bytes));
  if (view.layout == kir::Layout::kPlanar)
    return {CallText(absl::StrCat("planar_", format), {at.text, k, column.text})};
  return {CallText(absl::StrCat("decode_", format), {at.text, column.text})};
}

}  // namespace quern::c
