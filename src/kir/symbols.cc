#include "kir/symbols.h"

#include <variant>

#include "base/check.h"
#include "base/divide.h"

namespace quern::kir {

StatusOr<int64_t> EvaluateIndex(const ExprRef& expr, const Binding& binding) {
  if (const auto* constant = std::get_if<Const>(&expr->node)) return constant->integer;
  if (const auto* name = std::get_if<NameRef>(&expr->node)) {
    auto it = binding.find(name->name);
    if (it == binding.end()) return absl::InvalidArgumentError(absl::StrFormat("%s is not bound", name->name));
    return it->second;
  }
  const auto* apply = std::get_if<Apply>(&expr->node);
  if (apply == nullptr || IsFloat(expr->dtype) || Row(apply->op).domain == OpDomain::kFloat) {
    return absl::InvalidArgumentError(absl::StrFormat("%s is not an expression of symbols", Print(expr)));
  }
  int64_t args[3] = {};
  QUERN_CHECK(apply->args.size() <= 3);
  for (size_t i = 0; i < apply->args.size(); ++i) {
    QUERN_ASSIGN(args[i], EvaluateIndex(apply->args[i], binding));
  }
  if (apply->op == Op::kSelect) return args[0] != 0 ? args[1] : args[2];
  return EvalInteger(apply->op, apply->args.back()->dtype, args[0], args[1], args[2]);
}

SymbolRanges RangesOf(const Kernel& kernel) {
  SymbolRanges ranges;
  for (const SymbolDecl& symbol : kernel.symbols) {
    if (!symbol.derived) {
      ranges[symbol.name] = symbol.range;
      continue;
    }
    const auto& [numerator, divisor] = *symbol.derived;
    const std::optional<int64_t> low = numerator.LowerBound(ranges), high = numerator.UpperBound(ranges);
    ranges[symbol.name] = {low && divisor > 0 ? CeilDiv(*low, divisor) : 0,
                           high && divisor > 0 ? CeilDiv(*high, divisor) : INT64_MAX};
  }
  return ranges;
}

StatusOr<Binding> BindSymbols(const Kernel& kernel, const Binding& binding) {
  Binding bound = binding;
  for (const SymbolDecl& symbol : kernel.symbols) {
    if (symbol.derived) {
      const auto& [numerator, divisor] = *symbol.derived;
      if (divisor <= 0) {
        return absl::InvalidArgumentError(
            absl::StrFormat("kernel %s: symbol %s has the divisor %d", kernel.name, symbol.name, divisor));
      }
      QUERN_ASSIGN(const int64_t value, numerator.Evaluate(bound));
      bound[symbol.name] = CeilDiv(value, divisor);
      continue;
    }
    auto it = binding.find(symbol.name);
    if (it == binding.end()) {
      return absl::InvalidArgumentError(absl::StrFormat("kernel %s: symbol %s is not bound", kernel.name, symbol.name));
    }
    if (it->second < symbol.range.low || it->second > symbol.range.high) {
      return absl::OutOfRangeError(absl::StrFormat("kernel %s: symbol %s is %d, outside %d..%d", kernel.name,
                                                   symbol.name, it->second, symbol.range.low, symbol.range.high));
    }
  }
  for (const SizeFact& fact : kernel.facts) {
    QUERN_ASSIGN(const int64_t value, fact.Evaluate(bound));
    if (value < 0) {
      return absl::OutOfRangeError(
          absl::StrFormat("kernel %s: %s is %d, below 0", kernel.name, fact.ToString(), value));
    }
  }
  return bound;
}

StatusOr<int64_t> GridChunks(const Kernel& kernel, const Binding& binding) {
  QUERN_ASSIGN(const Binding bound, BindSymbols(kernel, binding));
  int64_t chunks = 1;
  for (const GridDim& dim : kernel.grid) {
    QUERN_ASSIGN(const int64_t low, EvaluateIndex(dim.low, bound));
    QUERN_ASSIGN(const int64_t high, EvaluateIndex(dim.high, bound));
    if (dim.step <= 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("kernel %s: grid %s has step %d", kernel.name, dim.index, dim.step));
    }
    int64_t length = 0;
    if (__builtin_sub_overflow(high, low, &length) ||
        __builtin_mul_overflow(chunks, length <= 0 ? 0 : CeilDiv(length, dim.step), &chunks)) {
      return absl::OutOfRangeError(absl::StrFormat("kernel %s: the grid has more than 2^63 chunks", kernel.name));
    }
  }
  return chunks;
}

}  // namespace quern::kir
