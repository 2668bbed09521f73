// The body of an elementwise vec loop as values that are computed in every round, each from earlier ones: what CutLoops
// may put into different loops. Private to cut_loops.cc.
//
//   vec c in 0..N { y[c] = exp(x[c] * 2) + x[c] }      0: x[c] * 2   1: exp of 0   2: 1 + x[c]
//
// No values of their own are what is had again anywhere for less than a store and a load: numbers, what does not differ
// between the rounds, plain elements of inputs and their conversions, index arithmetic. Neither are the products of a
// sum that may contract them, and what keeps a divisor from being 0: they stay beside what they are part of.
#pragma once

#include <optional>
#include <vector>

#include "codegen/choose_cuts.h"
#include "kir/intern.h"
#include "kir/kir.h"

namespace quern::codegen {

class LoopValues {
 public:
  // Nothing for a loop that is not of elementwise stores alone: it reads what it writes, or has reductions.
  static std::optional<LoopValues> Of(const kir::Loop& loop);

  const std::vector<BodyStep>& steps() const { return steps_; }
  // The expression of a step; what it has in common with others is shared.
  const kir::ExprRef& Expr(int step) const { return nodes_.node(numbers_[step]); }
  size_t stores() const { return stored_.size(); }
  // What a store writes, and the steps that it needs at the place of the store.
  const kir::ExprRef& Stored(size_t store) const { return nodes_.node(stored_[store]); }
  const std::vector<int>& Under(size_t store) const { return under_[stored_[store]]; }
  // What stands for an expression of the body in a loop that finds step s as given(s), null where it computes it.
  template <typename Given>
  kir::ExprRef Instead(const kir::ExprRef& expr, const Given& given) {
    if (IsAccess(*expr)) {
      const kir::ExprRef other = ByStep(expr, given);
      return other == nullptr ? expr : other;  // places are written as they are
    }
    return ByStep(expr, given);
  }

 private:
  LoopValues() = default;
  static bool IsAccess(const kir::Expr& expr) {
    return std::holds_alternative<kir::Load>(expr.node) || std::holds_alternative<kir::Decode>(expr.node);
  }
  template <typename Given>
  kir::ExprRef ByStep(const kir::ExprRef& expr, const Given& given) {
    const size_t number = static_cast<size_t>(nodes_.Number(expr));
    const int step = number < step_of_.size() ? step_of_[number] : -1;
    return step < 0 ? nullptr : given(step);
  }
  bool Look(const kir::Loop& loop);
  void MarkGlued(int number);
  void Classify(int number);

  kir::Interner nodes_;
  std::vector<int> stored_;              // by store: the number of its value
  std::vector<char> needed_, glued_;     // by number
  std::vector<char> varies_, light_;     // ... differs between rounds; is had again for little
  std::vector<char> place_;              // ... index arithmetic
  std::vector<int> step_of_;             // ... -1: none
  std::vector<std::vector<int>> under_;  // ... the steps that it is computed from
  std::vector<BodyStep> steps_;
  std::vector<int> numbers_;  // by step
};

}  // namespace quern::codegen
