#include "runtime/symbol_program.h"

#include <algorithm>
#include <variant>

#include "base/check.h"
#include "base/divide.h"
#include "kir/operators.h"

namespace quern {
namespace {

constexpr int kDeepest = 24;

StatusOr<int> Position(std::string_view name, std::span<const std::string> names) {
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end())
    return absl::InternalError(absl::StrFormat("symbol %s is not in the table", std::string(name)));
  return static_cast<int>(it - names.begin());
}

}  // namespace

StatusOr<Polynomial> Polynomial::Compile(const Extent& extent, std::span<const std::string> names) {
  Polynomial polynomial;
  for (const Extent::Term& term : extent.terms()) {
    if (term.symbols.empty()) {
      polynomial.constant_ = term.coefficient;
      continue;
    }
    Term compiled{term.coefficient, {}, {}};
    for (const std::string& factor : term.symbols) {
      if (const std::optional<Quotient> quotient = Quotient::Of(factor)) {
        QUERN_ASSIGN(Polynomial numerator, Compile(quotient->numerator, names));
        compiled.quotients.push_back({{std::move(numerator)}, quotient->divisor});
      } else {
        QUERN_ASSIGN(const int position, Position(factor, names));
        compiled.symbols.push_back(position);
      }
    }
    polynomial.terms_.push_back(std::move(compiled));
  }
  return polynomial;
}

int64_t Polynomial::Evaluate(std::span<const int64_t> values) const {
  uint64_t sum = static_cast<uint64_t>(constant_);
  for (const Term& term : terms_) {
    uint64_t product = static_cast<uint64_t>(term.coefficient);
    for (const int symbol : term.symbols) product *= static_cast<uint64_t>(values[symbol]);
    for (const Term::Divided& quotient : term.quotients)
      product *= static_cast<uint64_t>(CeilDiv(quotient.numerator[0].Evaluate(values), quotient.divisor));
    sum += product;
  }
  return static_cast<int64_t>(sum);
}

std::optional<int64_t> Polynomial::EvaluateChecked(std::span<const int64_t> values) const {
  int64_t sum = constant_;
  for (const Term& term : terms_) {
    int64_t product = term.coefficient;
    for (const int symbol : term.symbols) {
      if (__builtin_mul_overflow(product, values[symbol], &product)) return std::nullopt;
    }
    for (const Term::Divided& quotient : term.quotients) {
      const std::optional<int64_t> numerator = quotient.numerator[0].EvaluateChecked(values);
      if (!numerator || __builtin_mul_overflow(product, CeilDiv(*numerator, quotient.divisor), &product))
        return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

StatusOr<IndexProgram> IndexProgram::Compile(const kir::ExprRef& expr, std::span<const std::string> names) {
  IndexProgram program;
  QUERN_RETURN_IF_ERROR(program.Emit(expr, names, 0));
  return program;
}

Status IndexProgram::Emit(const kir::ExprRef& expr, std::span<const std::string> names, int depth) {
  // Operands of one operator stay on the stack while the next is computed: depth and arity bound its height.
  if (depth > kDeepest / 3) return absl::InternalError("an index expression is nested too deeply");
  if (const auto* constant = std::get_if<kir::Const>(&expr->node)) {
    steps_.push_back({.kind = Kind::kConstant, .value = constant->integer});
    return absl::OkStatus();
  }
  if (const auto* name = std::get_if<kir::NameRef>(&expr->node)) {
    QUERN_ASSIGN(const int position, Position(name->name, names));
    steps_.push_back({.kind = Kind::kSymbol, .value = position});
    return absl::OkStatus();
  }
  const auto* apply = std::get_if<kir::Apply>(&expr->node);
  if (apply == nullptr || IsFloat(expr->dtype) || kir::Row(apply->op).domain == kir::OpDomain::kFloat ||
      apply->args.size() > 3) {
    return absl::InternalError(absl::StrFormat("%s is not an expression of symbols", kir::Print(expr)));
  }
  for (const kir::ExprRef& arg : apply->args) QUERN_RETURN_IF_ERROR(Emit(arg, names, depth + 1));
  steps_.push_back({.kind = apply->op == kir::Op::kSelect ? Kind::kSelect : Kind::kApply,
                    .op = apply->op,
                    .dtype = apply->args.back()->dtype,
                    .args = static_cast<int>(apply->args.size())});
  return absl::OkStatus();
}

int64_t IndexProgram::Evaluate(std::span<const int64_t> values) const {
  int64_t stack[kDeepest + 3];
  int top = 0;
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::kConstant: stack[top++] = step.value; break;
      case Kind::kSymbol: stack[top++] = values[step.value]; break;
      case Kind::kSelect:
      case Kind::kApply: {
        int64_t args[3] = {};
        top -= step.args;
        std::copy_n(stack + top, step.args, args);
        stack[top++] = step.kind == Kind::kSelect ? (args[0] != 0 ? args[1] : args[2])
                                                  : kir::EvalInteger(step.op, step.dtype, args[0], args[1], args[2]);
        break;
      }
    }
  }
  return stack[0];
}

StatusOr<KernelSizes> KernelSizes::Compile(const kir::Kernel& kernel, std::span<const std::string> names) {
  KernelSizes sizes;
  std::vector<std::string> own;
  for (const kir::SymbolDecl& decl : kernel.symbols) {
    Symbol symbol;
    if (decl.derived) {
      QUERN_ASSIGN(symbol.numerator, Polynomial::Compile(decl.derived->first, own));
      symbol.divisor = decl.derived->second;
      QUERN_CHECK(symbol.divisor > 0);
    } else {
      QUERN_ASSIGN(symbol.position, Position(decl.name, names));
    }
    sizes.symbols_.push_back(std::move(symbol));
    own.push_back(decl.name);
  }
  for (const kir::GridDim& dim : kernel.grid) {
    QUERN_ASSIGN(IndexProgram low, IndexProgram::Compile(dim.low, own));
    QUERN_ASSIGN(IndexProgram high, IndexProgram::Compile(dim.high, own));
    QUERN_CHECK(dim.step > 0);
    sizes.grid_.push_back({std::move(low), std::move(high), dim.step});
  }
  return sizes;
}

int64_t KernelSizes::Evaluate(std::span<const int64_t> values, std::span<int64_t> table) const {
  for (size_t s = 0; s < symbols_.size(); ++s) {
    const Symbol& symbol = symbols_[s];
    table[s] =
        symbol.position >= 0 ? values[symbol.position] : CeilDiv(symbol.numerator.Evaluate(table), symbol.divisor);
  }
  int64_t chunks = 1;
  for (const Dimension& dim : grid_) {
    chunks *= CeilDiv(std::max<int64_t>(0, dim.high.Evaluate(table) - dim.low.Evaluate(table)), dim.step);
  }
  return chunks;
}

}  // namespace quern
