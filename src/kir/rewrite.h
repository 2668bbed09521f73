// Rebuilds expressions and statements with some nodes replaced.
//
//   Rewrite(value, [](const ExprRef& node) { return IsSum(node) ? kb::Ref("total", node->dtype) : nullptr; })
#pragma once

#include <functional>
#include <span>

#include "kir/kir.h"

namespace quern::kir {

// What stands in the place of an expression, or null to keep it and go on with its parts.
using Replace = std::function<ExprRef(const ExprRef& node)>;

// The expression with other operands, one for each of Operands (walk.h).
ExprRef WithOperands(const Expr& expr, std::span<const ExprRef> operands);

// Null stays null. Each node is offered before its parts; what `replace` gives is not looked into.
ExprRef Rewrite(const ExprRef& expr, const Replace& replace);
// Every expression of the statement and of those inside, bounds, indices and slices included. Origins stay.
StmtRef Rewrite(const StmtRef& stmt, const Replace& replace);
Block Rewrite(const Block& block, const Replace& replace);

}  // namespace quern::kir
