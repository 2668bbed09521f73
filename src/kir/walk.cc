#include "kir/walk.h"

#include <algorithm>

#include "kir/parts.h"

namespace quern::kir {

std::vector<ExprRef> Operands(const Expr& expr) {
  struct Collector : NoParts {
    std::vector<ExprRef> operands;
    void Expr(const ExprRef& operand) { operands.push_back(operand); }
  } collector;
  Parts(expr, collector);
  return std::move(collector.operands);
}

std::vector<const Block*> Bodies(const Stmt& stmt) {
  struct Collector : NoParts {
    std::vector<const Block*> bodies;
    void Body(const Block& body) { bodies.push_back(&body); }
  } collector;
  Parts(stmt, collector);
  return std::move(collector.bodies);
}

void ForEach(const Block& block, const std::function<void(const Stmt&)>& visit) {
  for (const StmtRef& stmt : block) {
    visit(*stmt);
    for (const Block* body : Bodies(*stmt)) ForEach(*body, visit);
  }
}

bool Any(const Block& block, const std::function<bool(const Stmt&)>& holds) {
  return std::any_of(block.begin(), block.end(), [&](const StmtRef& stmt) {
    if (holds(*stmt)) return true;
    const std::vector<const Block*> bodies = Bodies(*stmt);
    return std::any_of(bodies.begin(), bodies.end(), [&](const Block* body) { return Any(*body, holds); });
  });
}

bool Writes(const Block& block, std::string_view buffer) {
  return Any(block, [&](const Stmt& stmt) {
    if (const auto* store = std::get_if<Store>(&stmt.node)) return store->buffer == buffer;
    if (const auto* copy = std::get_if<Copy>(&stmt.node)) return copy->dst.buffer == buffer;
    if (const auto* pack = std::get_if<Pack>(&stmt.node)) return pack->dst.buffer == buffer;
    const auto* call = std::get_if<TileCall>(&stmt.node);
    return call != nullptr && std::find(call->tiles.begin(), call->tiles.end(), buffer) != call->tiles.end();
  });
}

}  // namespace quern::kir
