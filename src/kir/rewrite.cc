#include "kir/rewrite.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kir/build.h"
#include "kir/parts.h"
#include "kir/walk.h"

namespace quern::kir {
namespace {

using Names = std::map<std::string, std::string, std::less<>>;

class Rewriter {
 public:
  Rewriter(const Replace& before, const Replace& after, const Names* names = nullptr)
      : before_(before), after_(after), names_(names) {}

  // Without recursion: expressions may be deeper than a stack.
  ExprRef Of(const ExprRef& expr) {
    if (expr == nullptr) return nullptr;
    if (const auto known = done_.find(expr.get()); known != done_.end()) return known->second;
    std::vector<ExprRef> pending = {expr};
    while (!pending.empty()) {
      const ExprRef at = pending.back();
      if (done_.contains(at.get())) {
        pending.pop_back();
      } else if (entered_.insert(at.get()).second) {
        ExprRef given = before_ ? before_(at) : nullptr;
        const std::vector<ExprRef> operands = given == nullptr ? Operands(*at) : std::vector<ExprRef>();
        if (given != nullptr) done_.emplace(at.get(), std::move(given));
        for (size_t i = operands.size(); i-- > 0;) {
          if (operands[i] != nullptr) pending.push_back(operands[i]);
        }
      } else {
        const ExprRef made = WithParts(at);  // its operands are done
        ExprRef replaced = after_ ? after_(made) : nullptr;
        done_.emplace(at.get(), replaced == nullptr ? made : std::move(replaced));
      }
    }
    return done_.at(expr.get());
  }
  StmtRef Of(const StmtRef& stmt) { return WithParts(stmt); }
  Block Of(const Block& block) {
    Block made;
    for (const StmtRef& stmt : block) made.push_back(Of(stmt));
    return made;
  }

 private:
  struct Inside : NoParts {
    Rewriter& rewriter;
    bool changed = false;
    explicit Inside(Rewriter& rewriter) : rewriter(rewriter) {}

    void Expr(ExprRef& expr) { Put(expr, rewriter.Of(expr)); }
    void Body(Block& block) { Put(block, rewriter.Of(block)); }
    void Type(BufferType& type) {
      if (rewriter.names_ == nullptr) return;
      for (Extent& dim : type.dims) Put(dim, dim.Renamed(*rewriter.names_));
    }
    template <typename Part>
    void Put(Part& part, Part made) {
      changed = changed || made != part;
      part = std::move(made);
    }
  };

  template <typename Node>
  std::shared_ptr<const Node> WithParts(const std::shared_ptr<const Node>& node) {
    Node copy = *node;
    Inside inside(*this);
    Parts(copy, inside);
    return inside.changed ? std::make_shared<const Node>(std::move(copy)) : node;
  }

  const Replace& before_;
  const Replace& after_;
  const Names* names_;  // of symbols in types; null: they stay
  std::unordered_set<const Expr*> entered_;
  std::unordered_map<const Expr*, ExprRef> done_;
};

Replace Renaming(const Names& names) {
  return [&names](const ExprRef& node) -> ExprRef {
    const auto* name = std::get_if<NameRef>(&node->node);
    if (name == nullptr) return nullptr;
    const auto found = names.find(name->name);
    return found == names.end() ? nullptr : build::Ref(found->second, node->dtype);
  };
}

}  // namespace

Block RenameSymbols(const Block& block, const Names& names) {
  return Rewriter(Renaming(names), nullptr, &names).Of(block);
}

ExprRef RenameSymbols(const ExprRef& expr, const Names& names) { return Rewrite(expr, Renaming(names)); }

ExprRef WithOperands(const Expr& expr, std::span<const ExprRef> operands) {
  struct Filler : NoParts {
    const ExprRef* next;
    void Expr(ExprRef& operand) { operand = *next++; }
  } filler;
  filler.next = operands.data();
  Expr copy = expr;
  Parts(copy, filler);
  return std::make_shared<const Expr>(std::move(copy));
}

ExprRef Rewrite(const ExprRef& expr, const Replace& before, const Replace& after) {
  return Rewriter(before, after).Of(expr);
}
StmtRef Rewrite(const StmtRef& stmt, const Replace& before, const Replace& after) {
  return Rewriter(before, after).Of(stmt);
}
Block Rewrite(const Block& block, const Replace& before, const Replace& after) {
  return Rewriter(before, after).Of(block);
}

}  // namespace quern::kir
