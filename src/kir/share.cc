#include "kir/share.h"

#include <functional>
#include <utility>

#include "kir/build.h"
#include "kir/parts.h"
#include "kir/share_values.h"
#include "kir/walk.h"

namespace quern::kir {
namespace {

// All names, and those that reductions declare.
struct Surveyor : Visitor {
  ShareState& state;
  explicit Surveyor(ShareState& state) : state(state) {}

  bool Enter(const ExprRef& expr) override {
    if (const auto* reduce = std::get_if<Reduce>(&expr->node)) {
      state.reduced.insert(reduce->index);
      for (const auto& [name, value] : reduce->lets) state.reduced.insert(name);
    }
    return true;
  }
  void Use(const std::string& name) override { state.taken.insert(name); }
  void Write(const std::string& name) override { state.taken.insert(name); }
  void Declare(const std::string& name, Role) override { state.taken.insert(name); }
};

// What a statement changes or declares, inside of it, too.
struct Changer : Visitor {
  ShareState& state;
  explicit Changer(ShareState& state) : state(state) {}

  bool Enter(const ExprRef&) override { return false; }
  void Write(const std::string& name) override { state.Change(name); }
  void Declare(const std::string& name, Role) override { state.Change(name); }
};

// A statement on its way: the values of its expressions, in the order of Parts, and the moment when what is inside
// begins.
struct Site {
  std::vector<int> roots = {};
  ShareState::Moment inside = {};
};

class Sharer {
 public:
  explicit Sharer(std::set<std::string> taken) { state_.taken = std::move(taken); }

  Kernel Of(Kernel kernel) {
    for (const Param& param : kernel.params) {
      state_.taken.insert(param.name);
      if (param.inplace.empty()) continue;
      state_.partners[param.name] = param.inplace;
      state_.partners[param.inplace] = param.name;
    }
    for (const SymbolDecl& symbol : kernel.symbols) state_.taken.insert(symbol.name);
    for (const GridDim& dim : kernel.grid) state_.taken.insert(dim.index);
    kernel.body = Of(kernel.body);
    return kernel;
  }

  Block Of(const Block& block) {
    Surveyor(state_).Visit(block);
    state_.threads = Any(block, [](const Stmt& stmt) {
      const auto* loop = std::get_if<Loop>(&stmt.node);
      return loop != nullptr && loop->kind == LoopKind::kThread;
    });
    return Shared(block);
  }

 private:
  Block Shared(const Block& block) {
    const auto outer = state_.visible;
    BlockValues values(state_);
    std::vector<Site> sites;
    for (size_t i = 0; i < block.size(); ++i) sites.push_back(Look(*block[i], i, values));
    values.Decide();
    Block shared;
    for (size_t i = 0; i < block.size(); ++i) {
      for (int value : values.LetsBefore(i)) {
        shared.push_back(build::WithOrigin(build::Let(values[value].name, values.InFull(value)), block[i]->origin));
        Publish(values[value], values[value].name);
      }
      shared.push_back(Written(*block[i], i, sites[i], values));
      if (const auto* let = std::get_if<Let>(&block[i]->node)) {
        const int value = sites[i].roots[0];
        if (!values[value].named || values.IsOwnLet(value, i)) Publish(values[value], let->name);
      }
    }
    state_.visible = outer;
    return shared;
  }

  Site Look(const Stmt& stmt, size_t number, BlockValues& values) {
    struct Roots : NoParts {
      std::function<int(const ExprRef&)> root;
      const std::map<std::string, std::string>* partners;
      std::vector<int> roots;
      bool partner = false;
      void Expr(const ExprRef& expr) { roots.push_back(root(expr)); }
      void Use(const std::string& name) { partner = partner || partners->contains(name); }
      void Write(const std::string& name) { Use(name); }
    } roots;
    roots.root = [&](const ExprRef& expr) { return values.Root(expr, number); };
    roots.partners = &state_.partners;
    Parts(stmt, roots);
    Site site{.roots = std::move(roots.roots)};
    if (std::holds_alternative<If>(stmt.node)) values.KeepCondition(site.roots[0]);
    if (const auto* let = std::get_if<Let>(&stmt.node)) values.NameRoot(site.roots[0], number, let->name);
    // Where parameters that may be one memory are accessed is compared as it is written.
    const size_t indices = site.roots.size() - (std::holds_alternative<Store>(stmt.node) ? 1 : 0);
    for (size_t i = 0; roots.partner && i < indices; ++i) values.KeepWhole(site.roots[i]);

    const auto change = [&] {
      Changer(state_).Visit(stmt);
      if (state_.threads) state_.now.memory_changed = ++state_.clock;
    };
    change();
    if (Bodies(stmt).empty()) return site;
    site.inside = state_.now;
    change();
    return site;
  }

  StmtRef Written(const Stmt& stmt, size_t number, const Site& site, const BlockValues& values) {
    struct Filler : NoParts {
      std::function<ExprRef(size_t)> expr;
      std::function<void(Block&)> body;
      size_t next = 0;
      void Expr(ExprRef& at) { at = expr(next++); }
      void Body(Block& block) { body(block); }
    } filler;
    filler.expr = [&](size_t i) {
      const int value = site.roots[i];
      return values.IsOwnLet(value, number) ? values.InFull(value) : values.Used(value);
    };
    const auto* pipeline = std::get_if<Pipeline>(&stmt.node);
    const bool branches = std::holds_alternative<If>(stmt.node);
    bool fetches = pipeline != nullptr;  // by copies alone
    filler.body = [&](Block& block) {
      if (std::exchange(fetches, false)) return;
      state_.now = site.inside;
      state_.branches += branches ? 1 : 0;
      block = Shared(block);
      state_.branches -= branches ? 1 : 0;
    };
    Stmt copy = stmt;
    Parts(copy, filler);
    return std::make_shared<const Stmt>(std::move(copy));
  }

  void Publish(const BlockValues::Value& value, const std::string& name) {
    if (value.outside || value.cheap || !MayBeNamed(state_.nodes, value.number)) return;
    state_.visible.insert_or_assign({value.number, value.changed}, ShareState::Named{name, state_.branches});
  }

  ShareState state_;
};

}  // namespace

Kernel ShareValues(Kernel kernel) { return Sharer({}).Of(std::move(kernel)); }

Block ShareValues(const Block& block, const std::set<std::string>& taken) { return Sharer(taken).Of(block); }

}  // namespace quern::kir
