// Walks over statements and expressions, for those who look for something rather than act on each kind. What a node is
// made of is in parts.h; those who act do so by std::visit, so that a kind that they forget does not compile.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "kir/kir.h"
#include "kir/parts.h"

namespace quern::kir {

// Goes through blocks, statements and expressions, outer before inner, in the order of Parts. An expression that is
// shared by several places is looked at once.
//
//   struct Symbols : Visitor { void Use(const std::string& name) override { names.insert(name); } ... };
class Visitor {
 public:
  virtual ~Visitor() = default;
  void Visit(const Block& block);
  void Visit(const Stmt& stmt);
  void Visit(const ExprRef& expr);  // null: nothing

 protected:
  // Whether to go on with what is inside.
  virtual bool Enter(const Stmt&) { return true; }
  virtual bool Enter(const ExprRef&) { return true; }
  virtual void Type(const BufferType&) {}
  virtual void Use(const std::string&) {}
  virtual void Write(const std::string&) {}
  virtual void Declare(const std::string&, Role) {}

 private:
  struct Inside;
  std::unordered_set<const Expr*> seen_;
};

// The expressions directly inside of an expression, in the order of Parts; null for one that is absent.
std::vector<ExprRef> Operands(const Expr& expr);
// Whether it is that name and nothing else.
bool IsName(const ExprRef& expr, std::string_view name);
// The blocks directly inside of a statement.
std::vector<const Block*> Bodies(const Stmt& stmt);

// Each statement of the block, at any depth, those around before those inside.
void ForEach(const Block& block, const std::function<void(const Stmt& stmt)>& visit);
// Whether `holds` of a statement in the block, at any depth.
bool Any(const Block& block, const std::function<bool(const Stmt& stmt)>& holds);
// Each node of an expression, itself included, or of all those of a block, once.
void ForEachExpr(const ExprRef& expr, const std::function<void(const ExprRef& node)>& visit);
void ForEachExpr(const Block& block, const std::function<void(const ExprRef& node)>& visit);
bool AnyExpr(const ExprRef& expr, const std::function<bool(const ExprRef& node)>& holds);
// Whether a statement in the block, at any depth, writes elements of `buffer` (a tile, too), as far as names tell.
bool Writes(const Block& block, std::string_view buffer);

}  // namespace quern::kir
