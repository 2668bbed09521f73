#include "kir/walk.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace quern::kir {

// The parts of a node that is looked into.
struct Visitor::Inside : NoParts {
  Visitor& visitor;
  std::vector<const ExprRef*>* operands = nullptr;  // where those of an expression wait for their turn
  explicit Inside(Visitor& visitor) : visitor(visitor) {}

  void Expr(const ExprRef& expr) {
    if (operands == nullptr)
      visitor.Visit(expr);
    else
      operands->push_back(&expr);
  }
  void Body(const Block& block) { visitor.Visit(block); }
  void Type(const BufferType& type) { visitor.Type(type); }
  void Use(const std::string& name) { visitor.Use(name); }
  void Write(const std::string& name) { visitor.Write(name); }
  void Declare(const std::string& name, Role role) { visitor.Declare(name, role); }
};

void Visitor::Visit(const Block& block) {
  for (const StmtRef& stmt : block) Visit(*stmt);
}

void Visitor::Visit(const Stmt& stmt) {
  if (!Enter(stmt)) return;
  Inside inside(*this);
  Parts(stmt, inside);
}

// Without recursion: expressions may be deeper than a stack.
void Visitor::Visit(const ExprRef& expr) {
  std::vector<const ExprRef*> pending = {&expr};
  Inside inside(*this);
  inside.operands = &pending;
  while (!pending.empty()) {
    const ExprRef& at = *pending.back();
    pending.pop_back();
    if (at == nullptr || !seen_.insert(at.get()).second || !Enter(at)) continue;
    const size_t before = pending.size();
    Parts(*at, inside);
    std::reverse(pending.begin() + static_cast<std::ptrdiff_t>(before), pending.end());
  }
}

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

namespace {

// Asks of each until the answer is yes.
struct Finder : Visitor {
  std::function<bool(const Stmt&)> stmt;
  std::function<bool(const ExprRef&)> expr;
  bool found = false;

  bool Enter(const Stmt& node) override {
    found = found || (stmt && stmt(node));
    return !found;
  }
  bool Enter(const ExprRef& node) override {
    found = found || (expr && expr(node));
    return !found && expr;
  }
};

}  // namespace

bool Any(const Block& block, const std::function<bool(const Stmt&)>& holds) {
  Finder finder;
  finder.stmt = holds;
  finder.Visit(block);
  return finder.found;
}

void ForEach(const Block& block, const std::function<void(const Stmt&)>& visit) {
  Any(block, [&](const Stmt& stmt) { return visit(stmt), false; });
}

bool IsName(const ExprRef& expr, std::string_view name) {
  const auto* ref = std::get_if<NameRef>(&expr->node);
  return ref != nullptr && ref->name == name;
}

bool AnyExpr(const ExprRef& expr, const std::function<bool(const ExprRef&)>& holds) {
  Finder finder;
  finder.expr = holds;
  finder.Visit(expr);
  return finder.found;
}

void ForEachExpr(const ExprRef& expr, const std::function<void(const ExprRef&)>& visit) {
  AnyExpr(expr, [&](const ExprRef& node) { return visit(node), false; });
}

void ForEachExpr(const Block& block, const std::function<void(const ExprRef&)>& visit) {
  Finder finder;
  finder.expr = [&](const ExprRef& node) { return visit(node), false; };
  finder.Visit(block);
}

bool Writes(const Block& block, std::string_view buffer) {
  struct Writer : Visitor {
    std::string_view buffer;
    bool found = false;
    bool Enter(const ExprRef&) override { return false; }
    void Write(const std::string& name) override { found = found || name == buffer; }
  } writer;
  writer.buffer = buffer;
  writer.Visit(block);
  return writer.found;
}

}  // namespace quern::kir
