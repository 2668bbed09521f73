// Expressions. Operators with one meaning in KIR and the language are written as such; the rest call a helper, named by
// operator and dtype ("add_i32", "mod_f32"). Floats below f64 are held as float, or as double when the language is
// wide, and rounded where they are stored or cast.
#include <cmath>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "codegen/text/text_emitter.h"
#include "kir/parts.h"

namespace quern::text {
namespace {

using kir::Op;

// The helper of integers, or of floats where no function of the language serves; and that function, where KIR's name
// for it is another. Infix tokens are the same.
struct OperatorText {
  Op op;
  const char* helper;
  const char* function;
};
constexpr OperatorText kOperators[] = {
    {Op::kNeg, "neg", nullptr},    {Op::kAbs, "abs", "fabs"},      {Op::kNot, "not", nullptr},
    {Op::kRound, nullptr, "rint"}, {Op::kRsqrt, "rsqrt", nullptr}, {Op::kAdd, "add", nullptr},
    {Op::kSub, "sub", nullptr},    {Op::kMul, "mul", nullptr},     {Op::kSigmoid, "sigmoid", nullptr},
    {Op::kDiv, "div", nullptr},    {Op::kMod, "mod", nullptr},     {Op::kMin, "min", nullptr},
    {Op::kMax, "max", nullptr},    {Op::kShl, "shl", nullptr},     {Op::kShr, "shr", nullptr},
};

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

const char* TextEmitter::Type(DType dtype) {
  if (dtype == DType::kBool) return "bool";
  const char* const type = MemoryType(language_, IsFloat(dtype) ? ComputedIn(language_, dtype) : dtype);
  if (*type == '\0') Unimplemented(Row(dtype).name);
  return type;
}

Code TextEmitter::Cast(const char* type, const Code& value) const {
  if (language_.casts_like_calls) return {CallText(type, {value.text})};
  return {absl::StrCat("(", type, ")", Wrapped(value, Level::kPrefix)), Level::kPrefix};
}

Code TextEmitter::Literal(DType dtype, const kir::Const& constant) {
  if (dtype == DType::kBool) return {constant.integer != 0 ? "true" : "false"};
  if (IsUnsigned(dtype))
    return {absl::StrCat(static_cast<uint64_t>(constant.integer), dtype == DType::kU64 ? "UL" : "U")};
  if (!IsFloat(dtype)) return Number(constant.integer);
  const double real = dtype == DType::kF64 ? constant.real : static_cast<float>(constant.real);
  if (std::isnan(real)) return {"NAN"};
  if (std::isinf(real)) return {real < 0 ? "-INFINITY" : "INFINITY", real < 0 ? Level::kPrefix : Level::kAtom};
  const bool single = ComputedIn(language_, dtype) == DType::kF32;
  std::string text;
  for (int digits = 1; digits <= 17; ++digits) {  // the shortest that reads back
    text = absl::StrFormat("%.*g", digits, real);
    if ((single ? std::strtof(text.c_str(), nullptr) : std::strtod(text.c_str(), nullptr)) == real) break;
  }
  if (text.find_first_of(".e") == std::string::npos) absl::StrAppend(&text, ".0");
  return {absl::StrCat(text, single ? "f" : ""), text[0] == '-' ? Level::kPrefix : Level::kAtom};
}

std::vector<Code> TextEmitter::Values(const std::vector<kir::ExprRef>& exprs) {
  std::vector<Code> values;
  for (const kir::ExprRef& expr : exprs) values.push_back(Value(expr));
  return values;
}

Code TextEmitter::Value(const kir::ExprRef& expr) {
  Type(expr->dtype);  // may be one that the language lacks
  if (!status_.ok()) return Number(0);
  const DType dtype = expr->dtype;
  return std::visit(
      kir::Overloaded{
          [&](const kir::Const& constant) { return Literal(dtype, constant); },
          [&](const kir::NameRef& name) {
            const Entity* entity = Find(name.name);
            if (entity == nullptr) return Number(0);
            if (!entity->staged.empty()) return Code{entity->staged};
            return entity->scalar ? *entity->scalar : Element(*entity->view, entity->element);
          },
          [&](const kir::Load& load) {
            const View view = FindView(load.buffer);
            const std::vector<Code> index = Values(load.index);
            const Code element = Element(view, index), inside = Inside(index, view.sizes);
            if (load.otherwise == nullptr || inside.text.empty()) return element;
            return Conditional(inside, element, Value(load.otherwise));
          },
          [&](const kir::Apply& apply) { return Operator(apply); },
          [&](const kir::Cast& cast) { return Conversion(cast.value->dtype, dtype, cast.value); },
          [&](const kir::Bits& bits) { return Reinterpretation(bits.value->dtype, dtype, Value(bits.value)); },
          [&](const kir::Reduce& reduce) { return Reduction(reduce, dtype); },
          [&](const kir::Decode& decode) { return Element(FindView(decode.buffer), Values(decode.index)); },
      },
      expr->node);
}

Code TextEmitter::Operator(const kir::Apply& apply) {
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
  return Call(apply.op, dtype, args);
}

Code TextEmitter::Call(Op op, DType dtype, const std::vector<Code>& args) {
  OperatorText row{op, nullptr, Row(op).name};
  for (const OperatorText& other : kOperators) row = other.op == op ? other : row;
  const DType computed = IsFloat(dtype) ? ComputedIn(language_, dtype) : dtype;
  std::vector<std::string> texts;
  for (const Code& arg : args) texts.push_back(arg.text);
  if (IsFloat(dtype) && row.function != nullptr) return {CallText(language_.function(row.function, computed), texts)};
  return {CallText(absl::StrCat(row.helper, "_", Row(computed).name), texts)};
}

std::optional<Code> TextEmitter::Fused(const kir::Apply& apply) {
  if ((apply.op != Op::kAdd && apply.op != Op::kSub) || !apply.contract || !language_.contracts) return std::nullopt;
  const bool minus = apply.op == Op::kSub;
  const bool second = ContractedProduct(apply.args[0]) == nullptr;
  const kir::Apply* product = ContractedProduct(apply.args[second ? 1 : 0]);
  if (product == nullptr) return std::nullopt;
  auto negated = [](const Code& code) { return Code{absl::StrCat("-", Wrapped(code, Level::kAtom)), Level::kPrefix}; };
  const Code other = Value(apply.args[second ? 0 : 1]), a = Value(product->args[0]), b = Value(product->args[1]);
  return Call(Op::kFma, apply.args[0]->dtype,
              {minus && second ? negated(a) : a, b, minus && !second ? negated(other) : other});
}

Code TextEmitter::Reduction(const kir::Reduce& reduce, DType dtype) {
  const Code low = Value(reduce.low), high = Value(reduce.high);
  const bool sum = reduce.op == kir::ReduceOp::kSum;
  const kir::Const start = IsFloat(dtype) ? kir::Const{.real = Identity(reduce.op)}
                                          : kir::Const{.integer = IntegerIdentity(reduce.op, dtype)};
  const Code identity = Literal(dtype, start);
  const std::string total = Fresh(Name(reduce.op));
  Line(absl::StrCat(Type(dtype), " ", total, " = ", identity.text, ";"));
  const Mark mark = Enter();
  BeginLoop(reduce.index, low, high, 1);
  for (const auto& [name, value] : reduce.lets) DefineLet(name, value);
  const kir::Apply* product = sum && language_.contracts ? ContractedProduct(reduce.body) : nullptr;
  if (product != nullptr) {
    const std::vector<Code> factors = Values(product->args);
    Line(absl::StrCat(total, " = ", Call(Op::kFma, dtype, {factors[0], factors[1], {total}}).text, ";"));
  } else if (IsFloat(dtype) && (sum || reduce.op == kir::ReduceOp::kProd)) {
    const Code term = Value(reduce.body);
    Line(absl::StrCat(total, sum ? " += " : " *= ", term.text, ";"));
  } else {
    const Code term = Value(reduce.body);
    Line(absl::StrCat(total, " = ", Call(CombineOp(reduce.op), dtype, {{total}, term}).text, ";"));
  }
  EndLoop(mark);
  return {total};
}

Code TextEmitter::Conversion(DType from, DType to, const kir::ExprRef& expr) {
  Code value = Value(expr);
  if (to == DType::kBool) return Infix("!=", Level::kOther, value, {"0"});
  // A narrow float that an operator made is rounded to its dtype first.
  if (IsFloat(from) && !IsRounded(*expr)) value = Rounded(from, value);
  if (from == to) return value;
  if (IsFloat(to)) return ToFloat(from, to, value);
  if (IsFloat(from)) return {CallText(absl::StrCat("saturate_", Row(to).name), {value.text})};
  if (to != DType::kI64) return Cast(Type(to), value);
  // The values of i8 to i32, u8, u16 and bool fit an int.
  const bool from_unsigned = IsUnsigned(from) || from == DType::kBool;
  const int bits = from == DType::kBool ? 1 : 8 * ScalarBytes(from);
  const bool narrow = language_.narrows && (bits < 32 || (bits == 32 && !from_unsigned));
  Code wide = Cast(narrow ? "int" : Type(DType::kI64), value);
  if (bits < 64)
    wide.high = std::ldexp(1.0, from_unsigned ? bits : bits - 1) - 1, wide.low = from_unsigned ? 0 : -wide.high - 1;
  wide.narrow = narrow;
  return wide;
}

Code TextEmitter::Reinterpretation(DType from, DType to, const Code& value) {
  if (from == to && !IsFloat(from)) return value;
  Code bits = from == DType::kI64 ? Wide(value) : value;
  if (IsFloat(from)) bits = {CallText(absl::StrCat("bits_of_", Row(from).name), {value.text})};
  if (IsFloat(to)) return {CallText(absl::StrCat("from_bits_", Row(to).name), {bits.text})};
  if (to == DType::kBool) return Infix("!=", Level::kOther, Infix("&", Level::kOther, bits, {"1"}), {"0"});
  return Cast(Type(to), bits);
}

Code TextEmitter::Element(const View& view, const std::vector<Code>& index) {
  if (index.size() != view.sizes.size()) Fail(absl::StrCat(view.pointer, " has another rank"));
  if (!status_.ok()) return Number(0);
  return IsBlock(view.dtype) ? Decoded(view, index) : FromMemory(view.dtype, Target(view, index));
}

std::string TextEmitter::Target(const View& view, const std::vector<Code>& index) {
  return absl::StrCat(view.pointer, "[", Position(view, index).text, "]");
}

}  // namespace quern::text
