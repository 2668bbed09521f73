#include "codegen/loop_values.h"

#include <algorithm>
#include <set>

#include "kir/walk.h"

namespace quern::codegen {
namespace {

using kir::Op;

// Instructions and cycles of what is not one of the simple ones; of no machine in particular.
struct Effort {
  int work, latency;
};
constexpr Effort kSimple = {1, 4}, kMath = {20, 60}, kDivision = {8, 14}, kPicked = {4, 20};

Effort EffortOf(const kir::Expr& expr) {
  const auto* apply = std::get_if<kir::Apply>(&expr.node);
  if (apply == nullptr) return std::holds_alternative<kir::Load>(expr.node) ? kPicked : kSimple;
  if (kir::Row(apply->op).math) return kMath;
  const bool divides =
      apply->op == Op::kDiv || apply->op == Op::kMod || apply->op == Op::kSqrt || apply->op == Op::kRsqrt;
  return divides ? kDivision : kSimple;
}

bool IsSum(Op op) { return op == Op::kAdd || op == Op::kSub; }

}  // namespace

std::optional<LoopValues> LoopValues::Of(const kir::Loop& loop) {
  LoopValues values;
  if (!values.Look(loop)) return std::nullopt;
  return values;
}

bool LoopValues::Look(const kir::Loop& loop) {
  std::set<std::string> written;
  for (const kir::StmtRef& stmt : loop.body) {
    const auto* store = std::get_if<kir::Store>(&stmt->node);
    if (store == nullptr || !written.insert(store->buffer).second) return false;
    stored_.push_back(nodes_.Number(store->value));
  }
  const int count = nodes_.size();
  needed_.resize(count), glued_.resize(count), varies_.resize(count), light_.resize(count);
  place_.resize(count);
  step_of_.assign(count, -1), under_.resize(count);
  // What stores are made of, but for places of memory.
  for (const int number : stored_) needed_[number] = true;
  for (int number = count; number-- > 0;) {
    const kir::Expr& node = *nodes_.node(number);
    if (std::holds_alternative<kir::Reduce>(node.node)) return false;
    const auto* load = std::get_if<kir::Load>(&node.node);
    if (load != nullptr && written.contains(load->buffer)) return false;
    if (!needed_[number]) continue;
    if (IsAccess(node)) continue;
    for (const int operand : nodes_.operands(number)) needed_[operand] = true;
    MarkGlued(number);
  }
  for (int number = 0; number < count; ++number) {
    const kir::Expr& node = *nodes_.node(number);
    const auto* name = std::get_if<kir::NameRef>(&node.node);
    varies_[number] = name != nullptr && name->name == loop.index;
    for (const int operand : nodes_.operands(number))
      varies_[number] = varies_[number] || (operand >= 0 && varies_[operand]);
    Classify(number);
  }
  return true;
}

// What must stand as it is inside of the node.
void LoopValues::MarkGlued(int number) {
  const kir::Expr& node = *nodes_.node(number);
  const auto* apply = std::get_if<kir::Apply>(&node.node);
  if (apply == nullptr) return;
  const std::vector<int>& operands = nodes_.operands(number);
  const auto applied = [&](int operand) { return std::get_if<kir::Apply>(&nodes_.node(operand)->node); };
  if (apply->contract && IsSum(apply->op)) {
    for (const int operand : operands) {
      const kir::Apply* product = applied(operand);
      if (product != nullptr && product->contract && product->op == Op::kMul) glued_[operand] = true;
    }
  }
  const bool divides = (apply->op == Op::kDiv || apply->op == Op::kMod) && !IsFloat(node.dtype);
  if (!divides || applied(operands[1]) == nullptr) return;
  glued_[operands[1]] = true;
  for (const int operand : nodes_.operands(operands[1])) {
    const kir::Apply* condition = applied(operand);
    if (condition != nullptr && condition->op == Op::kEq) glued_[operand] = true;
  }
}

void LoopValues::Classify(int number) {
  const kir::Expr& node = *nodes_.node(number);
  const std::vector<int>& operands = nodes_.operands(number);
  const auto all = [&](const auto& holds) {
    return std::all_of(operands.begin(), operands.end(), [&](int operand) { return operand < 0 || holds(operand); });
  };
  const bool access = IsAccess(node);
  const auto place = [&](int operand) { return place_[operand] != 0; };
  place_[number] = !access && !IsFloat(node.dtype) && !std::holds_alternative<kir::Bits>(node.node) && all(place);
  const bool converts =
      std::holds_alternative<kir::Cast>(node.node) && IsAccess(*nodes_.node(operands[0])) && light_[operands[0]] != 0;
  const bool element = std::holds_alternative<kir::Load>(node.node) && all([&](int operand) {
                         return place_[operand] || std::holds_alternative<kir::Const>(nodes_.node(operand)->node);
                       });
  light_[number] = !varies_[number] || operands.empty() || place_[number] || converts || element;
  if (!needed_[number]) return;
  std::vector<int> under;
  if (!access) {
    for (const int operand : operands) {
      for (const int step : under_[operand]) {
        if (std::find(under.begin(), under.end(), step) == under.end()) under.push_back(step);
      }
    }
  }
  if (light_[number] || glued_[number]) {
    under_[number] = std::move(under);
    return;
  }
  const Effort effort = EffortOf(node);
  step_of_[number] = static_cast<int>(steps_.size());
  under_[number] = {step_of_[number]};
  numbers_.push_back(number);
  steps_.push_back({.operands = std::move(under), .work = effort.work, .latency = effort.latency});
}

}  // namespace quern::codegen
