// Expressions as text: parentheses only where needed.
//
// A literal is written without its dtype where the parser gives it that dtype anyway. `typed` below says so: the place
// (an index, a store, the other operand) fixes the dtype. Elsewhere an f32 or i64 literal is plain and others have a
// suffix. `contract` is the flag that the parser gives to + - * here; nodes that differ are wrapped in contract() or
// exact().
#include "kir/print_expr.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace quern::kir {
namespace {

constexpr int kAtom = 100;  // binds tighter than every operator

template <typename Number>
std::string Shortest(Number value) {
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end);
}

std::string RealText(double value, DType dtype) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = Shortest(value);
  if (dtype == DType::kF32) {
    // Shorter, unless reading it as a double and rounding would give another float.
    const std::string shorter = Shortest(static_cast<float>(value));
    double read = 0;
    std::from_chars(shorter.data(), shorter.data() + shorter.size(), read);
    if (static_cast<float>(read) == static_cast<float>(value)) text = shorter;
  }
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

bool IsComparison(Op op) { return op == Op::kEq || op == Op::kNe || op == Op::kLt || op == Op::kLe; }
size_t FirstOperand(Op op) { return op == Op::kSelect ? 1 : 0; }

// Made of literals alone, so that its dtype comes from outside.
bool IsFlexible(const ExprRef& expr) {
  if (std::holds_alternative<Const>(expr->node)) return expr->dtype != DType::kBool;
  const Apply* apply = std::get_if<Apply>(&expr->node);
  if (apply == nullptr || IsComparison(apply->op)) return false;
  for (size_t i = FirstOperand(apply->op); i < apply->args.size(); ++i) {
    if (!IsFlexible(apply->args[i])) return false;
  }
  return true;
}

class ExprPrinter {
 public:
  std::string Text(const ExprRef& expr, bool typed, bool contract = false, int min_precedence = 0) const {
    return std::visit([&](const auto& node) { return Of(node, *expr, typed, contract, min_precedence); }, expr->node);
  }

  std::string Indices(const Index& index, bool contract) const {
    std::string text = "[";
    for (size_t i = 0; i < index.size(); ++i) absl::StrAppend(&text, i > 0 ? ", " : "", Text(index[i], true, contract));
    return text + "]";
  }

  std::string Range(const ExprRef& low, const ExprRef& high, bool contract = false) const {
    auto simple = [](const ExprRef& expr) {
      return std::holds_alternative<Const>(expr->node) || std::holds_alternative<NameRef>(expr->node);
    };
    const char* dots = simple(low) && simple(high) ? ".." : " .. ";
    return absl::StrCat(Text(low, true, contract), dots, Text(high, true, contract));
  }

 private:
  static std::string Parenthesised(std::string text, bool needed) {
    return needed ? absl::StrCat("(", text, ")") : text;
  }

  std::string Of(const Const& literal, const Expr& expr, bool typed, bool, int) const {
    if (expr.dtype == DType::kBool) return literal.integer != 0 ? "true" : "false";
    const bool real = IsFloat(expr.dtype);
    std::string text = real                        ? RealText(literal.real, expr.dtype)
                       : expr.dtype == DType::kU64 ? absl::StrCat(static_cast<uint64_t>(literal.integer))
                                                   : absl::StrCat(literal.integer);
    if (!typed && expr.dtype != (real ? DType::kF32 : DType::kI64)) text += std::string(Name(expr.dtype));
    return text;
  }

  std::string Of(const NameRef& name, const Expr&, bool, bool, int) const { return name.name; }

  std::string Of(const Load& load, const Expr&, bool, bool contract, int min_precedence) const {
    std::string text = load.buffer + Indices(load.index, contract);
    if (load.otherwise == nullptr) return text;
    absl::StrAppend(&text, " else ", Text(load.otherwise, true, contract, kAtom));
    return Parenthesised(std::move(text), min_precedence > 0);
  }

  std::string Of(const Apply& apply, const Expr& expr, bool typed, bool contract, int min_precedence) const {
    const bool may_fuse = IsFloat(expr.dtype) && (apply.op == Op::kAdd || apply.op == Op::kSub || apply.op == Op::kMul);
    if (may_fuse && apply.contract != contract) {
      return absl::StrCat(apply.contract ? "contract(" : "exact(", Of(apply, expr, typed, apply.contract, 0), ")");
    }
    const OpRow& row = Row(apply.op);
    // One operand with a dtype of its own gives it to the literals beside it.
    bool typed_operands = typed && !IsComparison(apply.op);
    for (size_t i = FirstOperand(apply.op); i < apply.args.size(); ++i) {
      typed_operands = typed_operands || !IsFlexible(apply.args[i]);
    }
    switch (row.syntax) {
      case OpSyntax::kPrefix: {
        const ExprRef& operand = apply.args[0];
        const Apply* inner = std::get_if<Apply>(&operand->node);
        const bool apart = std::holds_alternative<Const>(operand->node) ||
                           (inner != nullptr && Row(inner->op).syntax == OpSyntax::kPrefix);
        return row.name + Parenthesised(Text(operand, typed_operands, contract, apart ? 0 : kAtom), apart);
      }
      case OpSyntax::kInfix: {
        const int precedence = row.precedence;
        std::string text = absl::StrCat(Text(apply.args[0], typed_operands, contract, precedence), " ", row.name, " ",
                                        Text(apply.args[1], typed_operands, contract, precedence + 1));
        return Parenthesised(std::move(text), precedence < min_precedence);
      }
      case OpSyntax::kCall: {
        std::string text = absl::StrCat(row.name, "(");
        for (size_t i = 0; i < apply.args.size(); ++i) {
          const bool given = i >= FirstOperand(apply.op) && typed_operands;
          absl::StrAppend(&text, i > 0 ? ", " : "", Text(apply.args[i], given, contract));
        }
        return text + ")";
      }
    }
    return "";
  }

  std::string Of(const Cast& cast, const Expr& expr, bool, bool contract, int) const {
    return absl::StrCat("cast<", std::string(Name(expr.dtype)), ">(", Text(cast.value, false, contract), ")");
  }
  std::string Of(const Bits& bits, const Expr& expr, bool, bool contract, int) const {
    return absl::StrCat("bits<", std::string(Name(expr.dtype)), ">(", Text(bits.value, false, contract), ")");
  }

  std::string Of(const Reduce& reduce, const Expr&, bool, bool contract, int) const {
    std::string text(Name(reduce.op));
    if (reduce.accs != 1) absl::StrAppend(&text, " accs ", reduce.accs);
    absl::StrAppend(&text, reduce.vec ? " vec " : " for ", reduce.index, " in ",
                    Range(reduce.low, reduce.high, contract), " { ");
    for (const auto& [name, value] : reduce.lets)
      absl::StrAppend(&text, "let ", name, " = ", Text(value, false, contract), "; ");
    return absl::StrCat(text, Text(reduce.body, false, contract), " }");
  }

  std::string Of(const Decode& decode, const Expr&, bool, bool contract, int) const {
    std::string text = "decode(" + decode.buffer;
    for (const ExprRef& at : decode.index) absl::StrAppend(&text, ", ", Text(at, true, contract));
    return text + ")";
  }
};

}  // namespace

std::string ExprText(const ExprRef& expr, bool typed) { return ExprPrinter().Text(expr, typed); }
std::string IndexText(const Index& index) { return ExprPrinter().Indices(index, false); }
std::string RangeText(const ExprRef& low, const ExprRef& high) { return ExprPrinter().Range(low, high); }

std::string Print(const ExprRef& expr) { return ExprText(expr, false); }

}  // namespace quern::kir
