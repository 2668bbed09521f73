#include "kir/canonical.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "kir/intern.h"
#include "kir/parts.h"
#include "kir/walk.h"

namespace quern::kir {
namespace {

// What a name that comes into being is called from there to the end of its scope. Roles: s symbols, i indices, v
// scalars, b buffers, t tiles.
using NewName = std::function<std::string(const std::string& name, char role)>;

// Renames the parts of what it visits, in the order in which names come into being. What is shared is visited once as
// long as names mean the same; a reduction that stands in two places has two indices.
class Renamer : public NoParts {
 public:
  Renamer(NewName new_name, bool origins) : new_name_(std::move(new_name)), origins_(origins) {}

  Kernel Run(Kernel kernel) {
    if (!origins_) kernel.origins.clear();
    for (SymbolDecl& symbol : kernel.symbols) Declare(symbol.name, 's');
    for (SymbolDecl& symbol : kernel.symbols) {
      if (symbol.derived) symbol.derived->first = Of(symbol.derived->first);
    }
    for (SizeFact& fact : kernel.facts) fact = Of(fact);
    for (Param& param : kernel.params) Declare(param.name, Role::kBuffer);
    for (Param& param : kernel.params) {
      Type(param.type);
      if (!param.inplace.empty()) Use(param.inplace);
    }
    for (GridDim& dim : kernel.grid) Expr(dim.low), Expr(dim.high);
    for (GridDim& dim : kernel.grid) Declare(dim.index, Role::kIndex);
    Body(kernel.body);
    return kernel;
  }

  void Use(std::string& name) { name = Of(name); }
  void Write(std::string& name) { name = Of(name); }
  void Declare(std::string& name, Role role) {
    switch (role) {
      case Role::kIndex: return Declare(name, 'i');
      case Role::kScalar: return Declare(name, 'v');
      case Role::kBuffer: return Declare(name, 'b');
      case Role::kTile: return Declare(name, 't');
    }
  }
  void Type(BufferType& type) {
    for (Extent& dim : type.dims) dim = Of(dim);
  }
  void Expr(ExprRef& expr) {
    if (expr == nullptr || std::holds_alternative<Const>(expr->node)) return;
    if (const auto known = renamed_.find(expr); known != renamed_.end()) {
      expr = known->second;
      return;
    }
    const int meanings = meanings_;
    kir::Expr copy = *expr;
    Parts(copy, *this);
    ExprRef made = std::make_shared<const kir::Expr>(std::move(copy));
    if (meanings == meanings_) renamed_.emplace(expr, made);  // declares nothing: alike wherever names mean the same
    expr = std::move(made);
  }
  void Body(Block& block) {
    Scope([&] {
      for (StmtRef& stmt : block) {
        Stmt copy = *stmt;
        if (!origins_) copy.origin = -1;
        Parts(copy, *this);
        stmt = std::make_shared<const Stmt>(std::move(copy));
      }
    });
  }
  template <typename Inner>
  void Scope(const Inner& inner) {
    const size_t mark = hidden_.size();
    inner();
    if (hidden_.size() > mark) Forget();
    for (; hidden_.size() > mark; hidden_.pop_back()) {
      auto& [name, before] = hidden_.back();
      if (before)
        names_[name] = *std::move(before);
      else
        names_.erase(name);
    }
  }

 private:
  // Replaces `name` from here to the end of the scope.
  void Declare(std::string& name, char role) {
    Forget();
    std::string next = new_name_(name, role);
    const auto [known, added] = names_.try_emplace(name, next);
    hidden_.emplace_back(name, added ? std::nullopt : std::optional(std::exchange(known->second, next)));
    name = std::move(next);
  }

  // Names are about to mean something else.
  void Forget() {
    ++meanings_;
    renamed_.clear();
  }

  const std::string& Of(const std::string& name) const {
    const auto it = names_.find(name);
    return it == names_.end() ? name : it->second;
  }

  Extent Of(const Extent& extent) const { return extent.Renamed(names_); }

  const NewName new_name_;
  const bool origins_;  // whether statements keep theirs
  std::map<std::string, std::string, std::less<>> names_;
  std::vector<std::pair<std::string, std::optional<std::string>>> hidden_;  // what names meant before
  int meanings_ = 0;                              // how often names have changed what they mean
  std::unordered_map<ExprRef, ExprRef> renamed_;  // since they last did
};

// Compares statements whose expressions are numbered by one interner.
class Comparer {
 public:
  Comparer(const std::vector<std::string>* a, const std::vector<std::string>* b) : origins_a_(a), origins_b_(b) {}

  bool Equal(const ExprRef& a, const ExprRef& b) { return nodes_.Number(a) == nodes_.Number(b); }
  bool Equal(const Block& a, const Block& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [this](const StmtRef& x, const StmtRef& y) { return Equal(*x, *y); });
  }

 private:
  bool Equal(const Stmt& a, const Stmt& b) {
    if (!EqualOrigin(a.origin, b.origin) || nodes_.Bytes(a) != nodes_.Bytes(b)) return false;
    const std::vector<const Block*> inside = Bodies(a), other = Bodies(b);
    return std::equal(inside.begin(), inside.end(), other.begin(), other.end(),
                      [this](const Block* x, const Block* y) { return Equal(*x, *y); });
  }
  bool EqualOrigin(int a, int b) const {
    auto text = [](const std::vector<std::string>* table, int row) {
      return row >= 0 && row < static_cast<int>(table->size()) ? (*table)[row] : std::string();
    };
    return origins_a_ == nullptr ? a == b : text(origins_a_, a) == text(origins_b_, b);
  }

  Interner nodes_;
  const std::vector<std::string>* const origins_a_;
  const std::vector<std::string>* const origins_b_;
};

}  // namespace

Kernel NormaliseNames(const Kernel& kernel) {
  std::map<char, int> counts;
  const NewName count = [&](const std::string&, char role) { return role + std::to_string(counts[role]++); };
  Kernel result = Renamer(count, /*origins=*/false).Run(kernel);
  result.name = "k";
  return result;
}

Kernel RenameSymbols(const Kernel& kernel, const std::map<std::string, std::string, std::less<>>& names) {
  std::set<std::string> taken;
  for (const auto& [from, to] : names) taken.insert(to);
  const NewName rename = [&](const std::string& name, char role) {
    const auto found = names.find(name);
    if (role == 's' && found != names.end()) return found->second;
    std::string own = name;
    while (taken.contains(own)) own += "_";
    return own;
  };
  return Renamer(rename, /*origins=*/true).Run(kernel);
}

bool Same(const ExprRef& a, const ExprRef& b) { return a == b || Comparer(nullptr, nullptr).Equal(a, b); }

bool Same(const Block& a, const Block& b) { return Comparer(nullptr, nullptr).Equal(a, b); }

bool Same(const Kernel& a, const Kernel& b) {
  auto same_param = [](const Param& x, const Param& y) {
    return x.name == y.name && x.type == y.type && x.mode == y.mode && x.align == y.align && x.inplace == y.inplace;
  };
  auto same_symbol = [](const SymbolDecl& x, const SymbolDecl& y) {
    return x.name == y.name && x.derived == y.derived && (x.derived || x.range == y.range);
  };
  auto same_dim = [](const GridDim& x, const GridDim& y) {
    return x.index == y.index && Same(x.low, y.low) && Same(x.high, y.high) && x.step == y.step;
  };
  return a.name == b.name && a.sequential == b.sequential &&
         std::equal(a.params.begin(), a.params.end(), b.params.begin(), b.params.end(), same_param) &&
         std::equal(a.symbols.begin(), a.symbols.end(), b.symbols.begin(), b.symbols.end(), same_symbol) &&
         a.facts == b.facts && std::equal(a.grid.begin(), a.grid.end(), b.grid.begin(), b.grid.end(), same_dim) &&
         Comparer(&a.origins, &b.origins).Equal(a.body, b.body);
}

}  // namespace quern::kir
