// Text of expressions; private to print.cc and print_expr.cc.
#pragma once

#include <string>

#include "kir/kir.h"

namespace quern::kir {

// `typed`: the place fixes the dtype of literals.
std::string ExprText(const ExprRef& expr, bool typed);
// [i, j]
std::string IndexText(const Index& index);
// low..high
std::string RangeText(const ExprRef& low, const ExprRef& high);

}  // namespace quern::kir
