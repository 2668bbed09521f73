#include "lir/lifetimes.h"

#include <algorithm>

#include "base/overloaded.h"

namespace quern::lir {
namespace {

class Walk {
 public:
  explicit Walk(const Plan& plan) : plan_(plan), behind_(plan.buffers.size()) { Visit(0); }

  std::map<int, Lifetime>& live() { return live_; }
  std::set<int>& touched() { return touched_; }

 private:
  void Visit(int body) {
    for (const Step& step : plan_.bodies[body].steps) {
      std::visit(Overloaded{[&](const Run& run) {
                              for (int l = run.first; l < run.end; ++l, ++tick_) {
                                for (const Argument& argument : plan_.launches[l].arguments) Touch(argument.buffer);
                              }
                            },
                            [&](const If& choice) {
                              Touch(choice.predicate.buffer);
                              ++tick_;
                              Visit(choice.then);
                              Visit(choice.otherwise);
                            },
                            [&](const While& loop) {
                              const int begin = Begin(loop.carries);
                              Touch(loop.predicate.buffer);
                              Visit(loop.cond);
                              Visit(loop.body);
                              End(begin);
                            },
                            [&](const Scan& scan) {
                              for (const Row& row : scan.rows) {
                                Touch(row.whole.buffer);
                                behind_[row.buffer] = {row.whole.buffer};
                              }
                              const int begin = Begin(scan.carries);
                              Visit(scan.body);
                              End(begin);
                            },
                            [&](const Count& count) {
                              Touch(count.count.buffer);
                              ++tick_;
                            }},
                 step);
    }
  }

  int Begin(const std::vector<Carry>& carries) {
    for (const Carry& carry : carries) {
      for (const int place : carry.places) Touch(place);
      Touch(carry.initial.buffer);
      behind_[carry.next] = {carry.places[0], carry.places[1]};
      behind_[carry.current] = {carry.places[0], carry.places[1], carry.initial.buffer};
    }
    return tick_++;
  }

  void End(int begin) {
    for (auto& [buffer, lifetime] : live_) {
      if (lifetime.first <= begin && lifetime.last >= begin) lifetime.last = tick_;
    }
    ++tick_;
  }

  void Touch(int buffer) {
    const Buffer& touched = plan_.buffers[buffer];
    if (touched.home == Home::kLoop) {
      for (const int other : behind_[buffer]) Touch(other);
      return;
    }
    touched_.insert(buffer);
    if (touched.home == Home::kArena) {
      live_.try_emplace(buffer, Lifetime{tick_, tick_, touched.bytes}).first->second.last = tick_;
    }
  }

  const Plan& plan_;
  std::vector<std::vector<int>> behind_;  // by buffer of Home::kLoop: what it may stand for
  std::map<int, Lifetime> live_;
  std::set<int> touched_;
  int tick_ = 0;
};

}  // namespace

std::map<int, Lifetime> Lifetimes(const Plan& plan) { return std::move(Walk(plan).live()); }
std::set<int> ReadByRuns(const Plan& plan) { return std::move(Walk(plan).touched()); }

}  // namespace quern::lir
