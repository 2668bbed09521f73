// What the lanes of a widened loop may differ in, and which bodies can be widened.
#include "codegen/cpu/emitter.h"
#include "kir/walk.h"

namespace quern::cpu {

// Whether an expression can differ between lanes when the names in `varying` do.
bool Emitter::Varies(const kir::ExprRef& expr, const NameSet& varying) {
  return kir::AnyExpr(expr, [&](const kir::ExprRef& node) {
    const auto* name = std::get_if<kir::NameRef>(&node->node);
    if (name == nullptr || varying.contains(name->name)) return name != nullptr;
    const Binding* binding = Lookup(name->name);
    return binding != nullptr && binding->kind == Binding::kTileElement;  // varies as its indices do
  });
}

// Whether the reductions of an expression run alike in all lanes.
bool Emitter::Widens(const kir::ExprRef& expr, const NameSet& varying) {
  NameSet names = varying;
  return !kir::AnyExpr(expr, [&](const kir::ExprRef& node) {
    const auto* reduce = std::get_if<kir::Reduce>(&node->node);
    if (reduce == nullptr) return false;
    AddVarying(reduce->lets, names);
    return Varies(reduce->low, names) || Varies(reduce->high, names);
  });
}

void Emitter::AddVarying(const kir::Lets& lets, NameSet& varying) {
  for (const auto& [name, value] : lets) {
    if (Varies(value, varying)) varying.insert(name);
  }
}

// Whether what the body of a vec loop computes in lanes are bytes alone, and neighbours are read and written.
bool Emitter::IsOfBytes(const kir::Loop& loop) {
  const NameSet varying = {loop.index};
  // The lanes of an index, as far as sums tell.
  const std::function<std::optional<int64_t>(const kir::ExprRef&)> step = [&](const kir::ExprRef& expr) {
    if (!Varies(expr, varying)) return std::optional<int64_t>(0);
    if (kir::IsName(expr, loop.index)) return std::optional<int64_t>(1);
    const auto* apply = std::get_if<kir::Apply>(&expr->node);
    if (apply == nullptr || (apply->op != kir::Op::kAdd && apply->op != kir::Op::kSub)) return std::optional<int64_t>();
    const std::optional<int64_t> a = step(apply->args[0]), b = step(apply->args[1]);
    if (!a || !b) return std::optional<int64_t>();
    return std::optional(apply->op == kir::Op::kAdd ? *a + *b : *a - *b);
  };
  const auto runs = [&](const kir::Index& at) {
    for (size_t d = 0; d < at.size(); ++d) {
      if (step(at[d]) != (d + 1 == at.size() ? 1 : 0)) return false;
    }
    return true;
  };
  const std::function<bool(const kir::ExprRef&)> of_bytes = [&](const kir::ExprRef& expr) {
    if (!Varies(expr, varying)) return true;
    if (ScalarBytes(expr->dtype) != 1) return false;
    if (const auto* load = std::get_if<kir::Load>(&expr->node))
      return runs(load->index) && (load->otherwise == nullptr || of_bytes(load->otherwise));
    if (const auto* cast = std::get_if<kir::Cast>(&expr->node)) return of_bytes(cast->value);
    const auto* apply = std::get_if<kir::Apply>(&expr->node);
    return apply != nullptr && std::ranges::all_of(apply->args, of_bytes);
  };
  return std::ranges::all_of(loop.body, [&](const kir::StmtRef& stmt) {
    const auto* store = std::get_if<kir::Store>(&stmt->node);
    return store != nullptr && ScalarBytes(store->value->dtype) == 1 && runs(store->index) && of_bytes(store->value);
  });
}

// Whether the body of a vec reduction can be.
bool Emitter::Widens(const kir::Reduce& reduce) {
  NameSet varying = {reduce.index};
  AddVarying(reduce.lets, varying);
  return Widens(reduce.body, varying) && std::all_of(reduce.lets.begin(), reduce.lets.end(),
                                                     [&](const auto& let) { return Widens(let.second, varying); });
}

// Whether a vec loop's body can be widened: inner bounds and conditions uniform, no memory or tiles of its own. Names
// that differ between the lanes are added to `varying`.
bool Emitter::Widens(const kir::Block& block, NameSet& varying) {
  const auto value_widens = [&](const kir::ExprRef& value) { return Widens(value, varying); };
  for (const kir::StmtRef& stmt : block) {
    const bool widens = std::visit(
        kir::Overloaded{
            [&](const kir::Loop& loop) {
              return !Varies(loop.low, varying) && !Varies(loop.high, varying) && Widens(loop.body, varying);
            },
            [&](const kir::If& branch) {
              return !Varies(branch.condition, varying) && Widens(branch.then_body, varying) &&
                     Widens(branch.else_body, varying);
            },
            [&](const kir::Let& let) {
              if (Varies(let.value, varying)) varying.insert(let.name);
              return value_widens(let.value);
            },
            [&](const kir::Var& var) {
              varying.insert(var.name);  // one register a lane
              return value_widens(var.value);
            },
            // A register from outside the loop is shared by all iterations: their order then matters.
            [&](const kir::Assign& assign) { return varying.contains(assign.name) && value_widens(assign.value); },
            [&](const kir::Store& store) {
              return value_widens(store.value) && std::all_of(store.index.begin(), store.index.end(), value_widens) &&
                     std::any_of(store.index.begin(), store.index.end(),
                                 [&](const kir::ExprRef& at) { return Varies(at, varying); });
            },
            [](const kir::Prefetch&) { return true; },
            // Others have no lanes.
            [](const auto&) { return false; },
        },
        stmt->node);
    if (!widens) return false;
  }
  return true;
}

}  // namespace quern::cpu
