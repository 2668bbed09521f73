// Rebuilds expressions and statements with some nodes replaced. What is shared stays shared: each node is offered once,
// however many places hold it, and what does not change stays the node that it was.
//
//   Rewrite(value, [](const ExprRef& node) { return IsSum(node) ? kb::Ref("total", node->dtype) : nullptr; })
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "kir/kir.h"

namespace quern::kir {

// What stands in the place of an expression, or null to keep it.
using Replace = std::function<ExprRef(const ExprRef& node)>;

// The expression with other operands, one for each of Operands (walk.h).
ExprRef WithOperands(const Expr& expr, std::span<const ExprRef> operands);

// Null stays null. Each node is offered to `before`; what that gives is not looked into. A node that it keeps is
// offered to `after` with its parts rewritten. Either may be null.
ExprRef Rewrite(const ExprRef& expr, const Replace& before, const Replace& after = nullptr);
// Every expression of the statement and of those inside, bounds, indices and slices included. Origins stay.
StmtRef Rewrite(const StmtRef& stmt, const Replace& before, const Replace& after = nullptr);
Block Rewrite(const Block& block, const Replace& before, const Replace& after = nullptr);

// Symbols under other names, in expressions and in the types of what is declared.
Block RenameSymbols(const Block& block, const std::map<std::string, std::string, std::less<>>& names);
ExprRef RenameSymbols(const ExprRef& expr, const std::map<std::string, std::string, std::less<>>& names);

}  // namespace quern::kir
