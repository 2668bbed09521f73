#include "codegen/choose_cuts.h"

#include <algorithm>
#include <limits>

namespace quern::codegen {
namespace {

constexpr double kIssue = 2;       // vector instructions in a cycle
constexpr double kWindow = 256;    // instructions that are in flight
constexpr double kMove = 0.6;      // cycles of a load or a store of memory near by
constexpr double kRound = 1.5;     // cycles of a round's counter and branch
constexpr double kTurn = 24;       // cycles of a loop's start, and of the wrong guess at its end
constexpr double kDecoded = 1500;  // instructions of a body that are not decoded again each round
constexpr double kWorth = 1.1;     // a cut body must be faster by this
constexpr int kForNumbers = 6;     // registers that constants and what is inside of a function take
constexpr size_t kLongest = 64;    // steps of a loop when there are several
constexpr double kMostExtra = 1e5;
constexpr int kNear = 24;  // steps for which a value is likely still in a register

// A run of steps as one loop, which grows by a step at a time.
class Part {
 public:
  Part(std::span<const BodyStep> steps, std::span<const int> order, std::span<const int> last_use,
       std::span<const int> place, const CutFacts& facts, size_t begin)
      : steps_(steps), order_(order), last_use_(last_use), place_(place), facts_(facts), begin_(begin) {}

  void Add() {
    const int at = static_cast<int>(begin_ + live_.size());
    const BodyStep& step = steps_[order_[at]];
    work_ += step.work;
    live_.push_back(0);
    ready_.push_back(0);
    touched_.push_back(at);
    double start = 0;
    for (const int operand : step.operands) {
      const int from = place_[operand];
      if (from < static_cast<int>(begin_)) {
        if (std::find(read_.begin(), read_.end(), from) == read_.end()) read_.push_back(from);
        continue;
      }
      start = std::max(start, ready_[from - begin_]);
      if (last_use_[from] == at) --kept_;
      Extend(from, at);
    }
    ready_.back() = start + step.latency;
    longest_ = std::max(longest_, ready_.back());
    if (last_use_[at] > at) ++kept_;
    ++live_.back();
  }

  double Cost() const {
    const double issued = work_ / kIssue + std::max(0.0, work_ - kDecoded) / kIssue;
    const double waited = longest_ * std::min(1.0, work_ / kWindow);
    const double moves = static_cast<double>(read_.size()) + kept_ + 1.5 * spills_;
    return std::max(issued, waited) + kMove * moves + kRound + kTurn / facts_.rounds;
  }

 private:
  // The value made at `from` is in use until `at`.
  void Extend(int from, int at) {
    int& touched = touched_[from - begin_];
    int most = 0;
    for (int k = touched + 1; k <= at; ++k) most = std::max(most, ++live_[k - begin_]);
    if (most > facts_.registers - kForNumbers) ++spills_;
    touched = at;
  }

  const std::span<const BodyStep> steps_;
  const std::span<const int> order_, last_use_, place_;
  const CutFacts& facts_;
  const size_t begin_;
  double work_ = 0, longest_ = 0;
  int kept_ = 0, spills_ = 0;
  std::vector<int> live_, touched_;  // by place from `begin` on
  std::vector<double> ready_;
  std::vector<int> read_;  // places of what comes from other loops
};

struct Plan {
  double cost = 0, whole = 0;  // cut, and as one loop
  std::vector<size_t> ends;
};

// The best cuts of the steps in this order: by places, the cheapest way to have a loop end there.
// `extra` cycles are added to every loop.
Plan CutsAt(std::span<const BodyStep> steps, std::span<const int> order, const CutFacts& facts, double extra) {
  const size_t count = steps.size();
  std::vector<int> place(count), last_use(count);
  for (size_t at = 0; at < count; ++at) place[order[at]] = static_cast<int>(at);
  for (size_t at = 0; at < count; ++at) {
    last_use[at] = static_cast<int>(at);
    for (const int operand : steps[order[at]].operands) last_use[place[operand]] = static_cast<int>(at);
  }
  std::vector<double> best(count + 1, std::numeric_limits<double>::infinity());
  std::vector<size_t> from(count + 1);
  best[0] = 0;
  for (size_t begin = 0; begin < count; ++begin) {
    Part part(steps, order, last_use, place, facts, begin);
    for (size_t end = begin + 1; end <= std::min(count, begin + kLongest); ++end) {
      part.Add();
      const double cost = best[begin] + part.Cost() + extra;
      if (cost >= best[end]) continue;
      best[end] = cost;
      from[end] = begin;
    }
  }
  Plan plan{.cost = best[count], .whole = 0, .ends = {}};
  for (size_t end = count; end > 0; end = from[end]) plan.ends.push_back(end);
  std::reverse(plan.ends.begin(), plan.ends.end());
  Part whole(steps, order, last_use, place, facts, 0);
  for (size_t at = 0; at < count; ++at) whole.Add();
  plan.whole = whole.Cost();
  return plan;
}

Plan BestCuts(std::span<const BodyStep> steps, std::span<const int> order, const CutFacts& facts) {
  double extra = 0;
  while (true) {
    Plan plan = CutsAt(steps, order, facts, extra);
    plan.cost -= extra * static_cast<double>(plan.ends.size());
    if (plan.ends.size() <= facts.loops || extra > kMostExtra) return plan;
    extra = 2 * extra + kTurn;
  }
}

// Next is always the step most of whose operands were in use a moment ago.
std::vector<int> NearOrder(std::span<const BodyStep> steps) {
  const int count = static_cast<int>(steps.size());
  std::vector<std::vector<int>> users(count);
  std::vector<int> waits(count), left(count), touched(count), ready, order;
  for (int v = 0; v < count; ++v) {
    for (const int operand : steps[v].operands) users[operand].push_back(v);
    waits[v] = static_cast<int>(steps[v].operands.size());
    if (waits[v] == 0) ready.push_back(v);
  }
  for (int v = 0; v < count; ++v) left[v] = static_cast<int>(users[v].size());
  for (int now = 0; now < count; ++now) {
    auto score = [&](int v) {
      int sum = 0;
      for (const int operand : steps[v].operands)
        sum += (now - touched[operand] <= kNear ? 2 : -1) + (left[operand] == 1 ? 1 : 0);
      return sum;
    };
    size_t next = 0;
    int most = std::numeric_limits<int>::min();
    for (size_t i = 0; i < ready.size(); ++i) {
      const int sum = score(ready[i]);
      if (sum < most || (sum == most && ready[i] > ready[next])) continue;
      most = sum;
      next = i;
    }
    const int step = ready[next];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(next));
    order.push_back(step);
    touched[step] = now;
    for (const int operand : steps[step].operands) {
      touched[operand] = now;
      --left[operand];
    }
    for (const int user : users[step]) {
      if (--waits[user] == 0) ready.push_back(user);
    }
  }
  return order;
}

}  // namespace

std::vector<std::vector<int>> ChooseCuts(std::span<const BodyStep> steps, const CutFacts& facts) {
  std::vector<int> order(steps.size());
  for (size_t at = 0; at < order.size(); ++at) order[at] = static_cast<int>(at);
  Plan plan = BestCuts(steps, order, facts);
  const double whole = plan.whole;
  std::vector<int> near = NearOrder(steps);
  if (Plan other = BestCuts(steps, near, facts); other.cost < plan.cost) {
    plan = std::move(other);
    order = std::move(near);
  }
  if (plan.cost * kWorth > whole) {
    for (size_t at = 0; at < order.size(); ++at) order[at] = static_cast<int>(at);
    return {order};
  }
  std::vector<std::vector<int>> parts;
  size_t begin = 0;
  for (const size_t end : plan.ends) {
    parts.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(begin),
                       order.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
  }
  return parts;
}

}  // namespace quern::codegen
