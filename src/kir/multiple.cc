#include "kir/multiple.h"

#include <algorithm>

namespace quern::kir {

int64_t MultipleOf(int64_t value) { return value == 0 ? kMostMultiple : std::min(kMostMultiple, value & -value); }

int64_t MultipleOf(const Extent& extent) {
  int64_t multiple = kMostMultiple;
  for (const Extent::Term& term : extent.terms()) multiple = std::min(multiple, MultipleOf(term.coefficient));
  return multiple;
}

int64_t MultipleOf(const ExprRef& expr, const std::function<int64_t(const std::string&)>& of_name) {
  if (const auto* constant = std::get_if<Const>(&expr->node)) return MultipleOf(constant->integer);
  if (const auto* ref = std::get_if<NameRef>(&expr->node)) return of_name(ref->name);
  const auto* apply = std::get_if<Apply>(&expr->node);
  if (apply == nullptr || IsFloat(expr->dtype)) return 1;
  const bool least = apply->op == Op::kAdd || apply->op == Op::kSub || apply->op == Op::kMin || apply->op == Op::kMax;
  if (!least && apply->op != Op::kMul) return 1;
  const int64_t a = MultipleOf(apply->args[0], of_name), b = MultipleOf(apply->args[1], of_name);
  return least ? std::min(a, b) : std::min(kMostMultiple, a * b);
}

}  // namespace quern::kir
