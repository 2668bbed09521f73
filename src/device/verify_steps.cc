#include "device/verify_steps.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace quern::device {
namespace {

// Bodies within bodies: a host's stack is no place for more.
constexpr int kMostNesting = 64;

class Walk {
 public:
  Walk(const std::string& where, const Variant& variant, const std::set<std::string, std::less<>>& symbols)
      : where_(where), variant_(variant), symbols_(symbols), seen_(variant.bodies.size()), at_(where) {}

  Status Body(int body, int nesting) {
    if (body < 0 || body >= static_cast<int>(variant_.bodies.size()))
      return Bad(absl::StrFormat("body %d of %u", body, variant_.bodies.size()));
    if (seen_[body]) return Bad(absl::StrFormat("body %d runs in two places", body));
    if (nesting > kMostNesting) return Bad("bodies too deep in each other");
    seen_[body] = true;
    for (size_t s = 0; s < variant_.bodies[body].steps.size(); ++s) {
      at_ = absl::StrFormat("%s.bodies[%d][%u]", where_, body, s);
      const auto check = [&](const auto& step) { return Step(step, nesting); };
      QUERN_RETURN_IF_ERROR(std::visit(check, variant_.bodies[body].steps[s]));
    }
    return absl::OkStatus();
  }

  Status Finish() const {
    if (next_ != static_cast<int>(variant_.launches.size()))
      return absl::InvalidArgumentError(absl::StrFormat("%s: no step runs launch %d", where_, next_));
    const auto unused = std::find(seen_.begin(), seen_.end(), false);
    if (unused == seen_.end()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrFormat("%s: no step runs body %d", where_, unused - seen_.begin()));
  }

 private:
  Status Bad(const std::string& what) const { return absl::InvalidArgumentError(absl::StrCat(at_, ": ", what)); }

  Status Step(const lir::Run& run, int) {
    if (run.first != next_ || run.end < run.first || run.end > static_cast<int>(variant_.launches.size()))
      return Bad(absl::StrFormat("launches %d to %d of %u, where %d is the next", run.first, run.end,
                                 variant_.launches.size(), next_));
    for (; next_ < run.end; ++next_) {
      for (const lir::Argument& argument : variant_.launches[next_].arguments) {
        QUERN_RETURN_IF_ERROR(Placed(argument.buffer));
      }
    }
    return absl::OkStatus();
  }

  Status Step(const lir::If& step, int nesting) {
    QUERN_RETURN_IF_ERROR(Read(step.predicate));
    const std::set<int> before = placed_;
    QUERN_RETURN_IF_ERROR(Body(step.then, nesting + 1));
    const std::set<int> then = std::exchange(placed_, before);
    QUERN_RETURN_IF_ERROR(Body(step.otherwise, nesting + 1));
    std::set<int> both;
    std::set_intersection(then.begin(), then.end(), placed_.begin(), placed_.end(), std::inserter(both, both.end()));
    placed_ = std::move(both);
    return absl::OkStatus();
  }

  Status Step(const lir::While& step, int nesting) {
    if (step.max < 0) return Bad("a negative number of trips");
    const std::set<int> before = placed_;
    std::set<int> after = before;
    QUERN_RETURN_IF_ERROR(Begin(step.carries, after));
    QUERN_RETURN_IF_ERROR(Body(step.cond, nesting + 1));
    QUERN_RETURN_IF_ERROR(Read(step.predicate));
    QUERN_RETURN_IF_ERROR(Body(step.body, nesting + 1));
    placed_ = std::move(after);
    return absl::OkStatus();
  }

  Status Step(const lir::Scan& step, int nesting) {
    QUERN_RETURN_IF_ERROR(Size(step.length));
    std::set<int> after = placed_;
    QUERN_RETURN_IF_ERROR(Begin(step.carries, after));
    for (const lir::Row& row : step.rows) {
      QUERN_RETURN_IF_ERROR(Read(row.whole));
      QUERN_RETURN_IF_ERROR(Size(row.stride));
      QUERN_RETURN_IF_ERROR(Place(row.buffer));
    }
    QUERN_RETURN_IF_ERROR(Body(step.body, nesting + 1));
    placed_ = std::move(after);
    return absl::OkStatus();
  }

  Status Step(const lir::Count& step, int) { return ir::RefuseCounted({{step.symbol, {}}}); }

  // `after`: what has a place when the loop is done.
  Status Begin(const std::vector<lir::Carry>& carries, std::set<int>& after) {
    for (const lir::Carry& carry : carries) {
      QUERN_RETURN_IF_ERROR(Read(carry.initial));
      for (const int place : carry.places) {
        QUERN_RETURN_IF_ERROR(Known(place));
        if (variant_.buffers[place].home != lir::Home::kArena) return Bad("a carry is kept outside of the arena");
      }
    }
    for (const lir::Carry& carry : carries) {
      QUERN_RETURN_IF_ERROR(Place(carry.current));
      QUERN_RETURN_IF_ERROR(Place(carry.next));
      after.insert(carry.current);
    }
    return absl::OkStatus();
  }

  Status Known(int buffer) const {
    if (buffer >= 0 && buffer < static_cast<int>(variant_.buffers.size())) return absl::OkStatus();
    return Bad(absl::StrFormat("buffer %d of %u", buffer, variant_.buffers.size()));
  }
  Status Placed(int buffer) const {
    QUERN_RETURN_IF_ERROR(Known(buffer));
    if (variant_.buffers[buffer].home != lir::Home::kLoop || placed_.contains(buffer)) return absl::OkStatus();
    return Bad(absl::StrFormat("buffer %d is read outside of its loop", buffer));
  }
  Status Place(int buffer) {
    QUERN_RETURN_IF_ERROR(Known(buffer));
    if (variant_.buffers[buffer].home != lir::Home::kLoop)
      return Bad(absl::StrFormat("buffer %d is no loop's", buffer));
    placed_.insert(buffer);
    return absl::OkStatus();
  }
  Status Read(const lir::Argument& argument) const {
    QUERN_RETURN_IF_ERROR(Placed(argument.buffer));
    return Size(argument.offset);
  }
  Status Size(const Extent& size) const {
    for (const std::string& symbol : size.Symbols()) {
      if (!symbols_.contains(symbol)) return Bad(absl::StrCat("there is no symbol ", symbol));
    }
    return absl::OkStatus();
  }

  const std::string& where_;
  const Variant& variant_;
  const std::set<std::string, std::less<>>& symbols_;
  std::vector<bool> seen_;  // by body
  std::set<int> placed_;    // loops' buffers that lie somewhere now
  int next_ = 0;            // launch
  std::string at_;
};

}  // namespace

Status VerifySteps(const std::string& where, const Variant& variant,
                   const std::set<std::string, std::less<>>& symbols) {
  Walk walk(where, variant, symbols);
  QUERN_RETURN_IF_ERROR(walk.Body(0, 0));
  return walk.Finish();
}

}  // namespace quern::device
