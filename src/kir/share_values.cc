#include "kir/share_values.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kir/build.h"
#include "kir/parts.h"
#include "kir/rewrite.h"

namespace quern::kir {
namespace {

constexpr int kShort = 12;            // nodes of index arithmetic that are written again rather than named
constexpr int64_t kLoads = 2;         // times that a plain load is written
constexpr int kDeepest = 32;          // nodes inside of each other
constexpr int kLongestKept = 256;     // nodes of a condition or an index that stay together
constexpr int kMostWeight = 1 << 20;  // larger ones count as this
constexpr int64_t kMostUses = int64_t{1} << 40;

bool IsComparison(Op op) { return op == Op::kEq || op == Op::kNe || op == Op::kLt || op == Op::kLe; }

// Operators of index arithmetic that cost about nothing.
bool IsCheap(Op op) {
  return op == Op::kNeg || op == Op::kAdd || op == Op::kSub || op == Op::kMul || op == Op::kMin || op == Op::kMax ||
         op == Op::kAnd || op == Op::kOr || op == Op::kNot || IsComparison(op);
}

const Apply* ApplyOf(const Interner& nodes, int number) { return std::get_if<Apply>(&nodes.node(number)->node); }

bool IsGuardedDivisor(const Interner& nodes, int number) {
  const Apply* select = ApplyOf(nodes, number);
  if (select == nullptr || select->op != Op::kSelect) return false;
  const Apply* equal = std::get_if<Apply>(&select->args[0]->node);
  return equal != nullptr && equal->op == Op::kEq && KnownInteger(select->args[1]).value_or(0) != 0 &&
         KnownInteger(equal->args[1]) == 0 && equal->args[0] == select->args[2];
}

}  // namespace

bool MayBeNamed(const Interner& nodes, int number) {
  return nodes.node(number)->dtype != DType::kBool && !IsGuardedDivisor(nodes, number);
}

int ShareState::Number(const ExprRef& expr) {
  const int number = nodes.Number(expr);
  while (static_cast<int>(captured.size()) < nodes.size()) {
    const int next = static_cast<int>(captured.size());
    std::set<std::string> names;
    const Expr& node = *nodes.node(next);
    if (const auto* name = std::get_if<NameRef>(&node.node); name != nullptr && reduced.contains(name->name))
      names.insert(name->name);
    for (int operand : nodes.operands(next)) {
      if (operand >= 0) names.insert(captured[operand].begin(), captured[operand].end());
    }
    if (const auto* reduce = std::get_if<Reduce>(&node.node)) {
      // Bounds stand outside, but a name that is visible there is not declared again inside.
      names.erase(reduce->index);
      for (const auto& [name, value] : reduce->lets) names.erase(name);
    }
    captured.push_back(std::move(names));
  }
  return number;
}

int64_t ShareState::Changed(const std::string& name) const {
  const auto found = now.changed.find(name);
  return found == now.changed.end() ? 0 : found->second;
}

void ShareState::Change(const std::string& name) {
  now.changed[name] = ++clock;
  if (const auto partner = partners.find(name); partner != partners.end()) now.changed[partner->second] = clock;
}

std::string ShareState::FreshName() {
  while (true) {
    std::string name = absl::StrCat("v", next_name++);
    if (taken.insert(name).second) return name;
  }
}

// Values

// An expression on the way to its value, in the scope whose names it mentions.
struct BlockValues::Visit {
  int number, scope;
  size_t next = 0;  // operand to look at
  std::vector<int> operands = {};
  int body = -1;
};

bool BlockValues::Declares(const Scope& scope, const std::string& name) const {
  return scope.reduce->index == name || std::any_of(scope.reduce->lets.begin(), scope.reduce->lets.end(),
                                                    [&](const auto& let) { return let.first == name; });
}

// The value, where it is one already; else the innermost scope `around` that declares a name of it.
std::optional<int> BlockValues::Known(int number, int scope, int& around) const {
  if (number < 0) return -1;
  around = scope;
  const std::set<std::string>& names = state_.captured[number];
  auto declared = [&](const std::string& name) { return Declares(scopes_[around], name); };
  while (around != 0 && std::none_of(names.begin(), names.end(), declared)) around = scopes_[around].parent;
  if (const auto* name = std::get_if<NameRef>(&state_.nodes.node(number)->node); name != nullptr && around != 0) {
    const auto let = scopes_[around].lets.find(name->name);
    if (let != scopes_[around].lets.end()) return let->second;
  }
  const auto asked = asked_.find({number, around, state_.clock});
  return asked == asked_.end() ? std::nullopt : std::optional(asked->second);
}

int BlockValues::Root(const ExprRef& expr, size_t statement) {
  if (expr == nullptr) return -1;
  const int value = ValueOf(state_.Number(expr), 0);
  roots_.emplace_back(value, statement);
  return value;
}

// Without recursion: expressions may be deeper than a stack.
int BlockValues::ValueOf(int number, int scope) {
  std::vector<Visit> stack;
  int result = -1;
  const auto look = [&](int at, int from) {
    int around = 0;
    const std::optional<int> known = Known(at, from, around);
    if (!known) {
      stack.push_back({.number = at, .scope = around});
    } else if (stack.empty()) {
      result = *known;
    } else {
      Take(stack.back(), *known);
    }
  };
  look(number, scope);
  while (!stack.empty()) {
    Visit& visit = stack.back();
    const std::vector<int>& operands = state_.nodes.operands(visit.number);
    const auto* reduce = std::get_if<Reduce>(&state_.nodes.node(visit.number)->node);
    if (reduce != nullptr && visit.next == 2) {
      visit.body = static_cast<int>(scopes_.size());
      scopes_.push_back({.parent = visit.scope, .reduce = reduce});
    }
    if (visit.next < operands.size()) {
      look(operands[visit.next++], visit.body < 0 ? visit.scope : visit.body);
      continue;
    }
    const int value = Finish(visit);
    stack.pop_back();
    if (stack.empty())
      result = value;
    else
      Take(stack.back(), value);
  }
  return result;
}

// What a let of a reduction stands for is found where its name is.
void BlockValues::Take(Visit& visit, int operand) {
  const auto* reduce = std::get_if<Reduce>(&state_.nodes.node(visit.number)->node);
  const size_t let = visit.next - 3;  // `next` is past the operand; two bounds come before the lets
  if (reduce == nullptr || visit.next < 3 || let >= reduce->lets.size()) {
    visit.operands.push_back(operand);
    return;
  }
  scopes_[visit.body].lets[reduce->lets[let].first] = operand;
  hints_.try_emplace(operand, visit.body, reduce->lets[let].first);
}

int BlockValues::Finish(Visit& visit) {
  const Expr& node = *state_.nodes.node(visit.number);
  Value value{.number = visit.number, .operands = std::move(visit.operands), .body = visit.body};
  const auto* apply = std::get_if<Apply>(&node.node);
  const bool leaf = std::holds_alternative<Const>(node.node) || std::holds_alternative<NameRef>(node.node);
  value.cheap = leaf || (!IsFloat(node.dtype) &&
                         ((apply != nullptr && IsCheap(apply->op)) || std::holds_alternative<Cast>(node.node)));
  for (int operand : value.operands) {
    if (operand < 0) continue;
    value.changed = std::max(value.changed, values_[operand].changed);
    value.weight = std::min(kMostWeight, value.weight + values_[operand].weight);
    value.cheap = value.cheap && values_[operand].cheap && !IsFloat(state_.nodes.node(values_[operand].number)->dtype);
  }
  if (const auto* name = std::get_if<NameRef>(&node.node); name != nullptr && visit.scope == 0)
    value.changed = state_.Changed(name->name);
  const auto* load = std::get_if<Load>(&node.node);
  const auto* decode = std::get_if<Decode>(&node.node);
  if (load != nullptr || decode != nullptr) {
    const std::string& buffer = load != nullptr ? load->buffer : decode->buffer;
    value.changed = std::max({value.changed, state_.Changed(buffer), state_.now.memory_changed});
    // The indices of parameters that may be one memory are compared as they are written.
    if (state_.partners.contains(buffer)) {
      for (int operand : value.operands) KeepWhole(operand);
    }
  }
  if (apply != nullptr && (apply->op == Op::kDiv || apply->op == Op::kMod) && !IsFloat(node.dtype) &&
      IsGuardedDivisor(state_.nodes, state_.nodes.operands(visit.number)[1])) {
    Value& divisor = values_[value.operands[1]];
    divisor.stays = values_[divisor.operands[0]].stays = true;
  }
  const auto [unique, added] = unique_.try_emplace({visit.number, visit.scope, value.changed}, values_.size());
  asked_[{visit.number, visit.scope, state_.clock}] = unique->second;
  if (!added) return unique->second;
  const auto visible = state_.visible.find({visit.number, value.changed});
  if (visit.scope == 0 && visible != state_.visible.end()) {
    // Of an integer the name may tell the verifier less, where a branch has facts that were not there outside.
    const bool known_as_well =
        IsFloat(node.dtype) || (visible->second.branches == state_.branches && state_.partners.empty());
    if (known_as_well) {
      value.outside = value.named = true;
      value.name = visible->second.name;
      value.operands.clear();
      value.weight = 1;
    }
  }
  values_.push_back(std::move(value));
  return unique->second;
}

void BlockValues::KeepCondition(int value) {
  const Apply* apply = ApplyOf(state_.nodes, values_[value].number);
  if (apply == nullptr || values_[value].weight > kLongestKept) return;
  values_[value].stays = true;
  const bool joins = apply->op == Op::kAnd || apply->op == Op::kOr || apply->op == Op::kNot;
  if (!joins) return;
  for (int operand : values_[value].operands) KeepCondition(operand);
}

void BlockValues::KeepWhole(int value) {
  if (value < 0 || values_[value].weight > kLongestKept) return;
  values_[value].stays = true;
  for (int operand : values_[value].operands) KeepWhole(operand);
}

// Decisions

// Whether it is as well written again as named.
bool BlockValues::IsShort(const Value& value) const {
  if (value.cheap) return value.weight <= kShort;
  const auto* load = std::get_if<Load>(&state_.nodes.node(value.number)->node);
  if (load == nullptr || load->otherwise != nullptr || value.uses > kLoads) return false;
  return std::all_of(value.operands.begin(), value.operands.end(), [&](int operand) {
    return operand < 0 || (values_[operand].cheap && values_[operand].weight <= kShort);
  });
}

int BlockValues::Common(int scope, int other) const {
  while (scope != other) {
    int& deeper = scopes_[scope].depth >= scopes_[other].depth ? scope : other;
    deeper = scopes_[deeper].parent;
  }
  return scope;
}

// From what uses values down to what they are made of. A value without a name is written as often as its users are.
void BlockValues::CountUses() {
  const auto use = [&](int value, int64_t times, int scope, size_t statement) {
    if (value < 0) return;
    Value& used = values_[value];
    used.uses = std::min(kMostUses, used.uses + times);
    used.scope = used.scope < 0 ? scope : Common(used.scope, scope);
    used.first = std::min(used.first, statement);
  };
  for (const auto& [value, statement] : roots_) use(value, 1, 0, statement);
  for (size_t v = values_.size(); v-- > 0;) {
    Value& value = values_[v];
    if (value.uses == 0 || value.outside) continue;
    value.named = value.uses > 1 && !value.stays && !IsShort(value);
    if (value.body >= 0) {
      scopes_[value.body].parent = value.scope;
      scopes_[value.body].depth = scopes_[value.scope].depth + 1;
    }
    for (size_t o = 0; o < value.operands.size(); ++o) {
      use(value.operands[o], value.named ? 1 : value.uses, value.body >= 0 && o == 2 ? value.body : value.scope,
          value.first);
    }
  }
}

// Names for values that are nested too deeply to be read.
void BlockValues::CutDeep() {
  std::vector<int> depths(values_.size(), 1);
  for (size_t v = 0; v < values_.size(); ++v) {
    Value& value = values_[v];
    if (value.uses == 0) continue;
    for (int operand : value.operands) {
      if (operand >= 0) depths[v] = std::max(depths[v], 1 + (values_[operand].named ? 1 : depths[operand]));
    }
    if (depths[v] >= kDeepest && !value.stays) value.named = true;
  }
}

void BlockValues::GiveNames() {
  for (const auto& [v, statement, name] : let_roots_) {
    Value& value = values_[v];
    if (!value.named || value.outside || value.scope != 0 || value.first != statement) continue;
    value.name = name;
    own_lets_.emplace(v, statement);
  }
  inside_.resize(scopes_.size());
  for (size_t v = 0; v < values_.size(); ++v) {
    Value& value = values_[v];
    if (!value.named || value.outside || value.uses == 0) continue;
    const auto hint = hints_.find(static_cast<int>(v));
    if (value.scope != 0 && hint != hints_.end() && hint->second.first == value.scope) value.name = hint->second.second;
    const bool own = !value.name.empty() && value.scope == 0;
    if (value.name.empty()) value.name = state_.FreshName();
    if (value.scope != 0) inside_[value.scope].push_back(static_cast<int>(v));
    if (value.scope == 0 && !own) before_[value.first].push_back(static_cast<int>(v));
  }
}

// Operands before what they are operands of.
void BlockValues::Write() {
  written_.resize(values_.size());
  for (size_t v = 0; v < values_.size(); ++v) {
    const Value& value = values_[v];
    if (value.uses == 0 || value.outside) continue;
    std::vector<ExprRef> operands;
    for (int operand : value.operands) operands.push_back(Used(operand));
    const Expr& node = *state_.nodes.node(value.number);
    if (const auto* reduce = std::get_if<Reduce>(&node.node)) {
      Reduce made = *reduce;
      made.low = operands[0];
      made.high = operands[1];
      made.lets.clear();
      for (int let : inside_[value.body]) made.lets.emplace_back(values_[let].name, written_[let]);
      made.body = operands[2];
      written_[v] = std::make_shared<const Expr>(Expr{std::move(made), node.dtype});
    } else {
      written_[v] = operands.empty() ? state_.nodes.node(value.number) : WithOperands(node, operands);
    }
  }
}

void BlockValues::Decide() {
  CountUses();
  CutDeep();
  GiveNames();
  Write();
}

const std::vector<int>& BlockValues::LetsBefore(size_t statement) const {
  const auto found = before_.find(statement);
  return found == before_.end() ? none_ : found->second;
}

ExprRef BlockValues::Used(int value) const {
  if (value < 0) return nullptr;
  const Value& used = values_[value];
  return used.named ? build::Ref(used.name, state_.nodes.node(used.number)->dtype) : written_[value];
}

}  // namespace quern::kir
