// Walks over the statements of a block, for those who look for something rather than act on each kind.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "kir/kir.h"

namespace quern::kir {

// The expressions directly inside of an expression, in the order of Parts (parts.h); null for one that is absent.
std::vector<ExprRef> Operands(const Expr& expr);
// The blocks directly inside of a statement.
std::vector<const Block*> Bodies(const Stmt& stmt);
// Each statement of the block, at any depth, those around before those inside.
void ForEach(const Block& block, const std::function<void(const Stmt& stmt)>& visit);
// Whether `holds` of a statement in the block, at any depth.
bool Any(const Block& block, const std::function<bool(const Stmt& stmt)>& holds);
// Whether a statement in the block, at any depth, writes elements of `buffer` (a tile, too), as far as names tell.
bool Writes(const Block& block, std::string_view buffer);

}  // namespace quern::kir
