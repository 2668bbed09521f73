#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lir/lifetimes.h"
#include "lir/plan.h"

namespace quern::lir {
namespace {

Status Fail(std::string text) { return absl::InternalError(absl::StrCat("plan: ", text)); }

// Whether [a, a + a_bytes) and [b, b + b_bytes) share nothing for any value of the symbols.
bool Apart(const Extent& a, const Extent& a_bytes, const Extent& b, const Extent& b_bytes, const SymbolRanges& ranges) {
  return b.ProvablyAtLeast(a + a_bytes, ranges) || a.ProvablyAtLeast(b + b_bytes, ranges);
}

// Whether nothing lies there before the plan writes it.
bool IsOurs(const Buffer& buffer) {
  switch (buffer.home) {
    case Home::kArena:
    case Home::kOnce:
    case Home::kOutput:
    case Home::kLoop: return true;
    case Home::kInput:
    case Home::kParam:
    case Home::kConstant:
    case Home::kState: break;
  }
  return false;
}

Status VerifyLaunch(const Plan& plan, const Launch& launch, std::set<int>& defined) {
  if (launch.kernel < 0 || launch.kernel >= static_cast<int>(plan.kernels.size())) return Fail("a launch of no kernel");
  const kir::Kernel& kernel = plan.kernels[launch.kernel];
  const std::string where = absl::StrCat(kernel.name, " (", launch.label, ")");
  if (launch.arguments.size() != kernel.params.size()) {
    return Fail(
        absl::StrFormat("%s has %u arguments, %u expected", where, launch.arguments.size(), kernel.params.size()));
  }
  for (size_t p = 0; p < launch.arguments.size(); ++p) {
    const Argument& argument = launch.arguments[p];
    if (argument.buffer < 0 || argument.buffer >= static_cast<int>(plan.buffers.size()))
      return Fail(where + " has an argument without a buffer");
    const Buffer& buffer = plan.buffers[argument.buffer];
    const kir::Param& param = kernel.params[p];
    if (AlignmentOf(argument.offset, AlignmentOf(buffer)) < param.align) {
      return Fail(absl::StrFormat("%s: %s wants alignment %d, %s + %s has less", where, param.name, param.align,
                                  buffer.name, argument.offset.ToString()));
    }
    // Extents may name symbols that the kernel derives; those have been checked against the buffer's own when it was
    // made.
    const Extent bytes = kir::LayoutBytes(param.type.layout, param.type.dtype, param.type.dims);
    const std::vector<std::string> symbols = bytes.Symbols();
    const bool known = std::all_of(symbols.begin(), symbols.end(),
                                   [&](const std::string& name) { return plan.ranges.contains(name); });
    if (known && argument.offset == Extent(0) && (bytes - buffer.bytes).LowerBound(plan.ranges).value_or(0) > 0) {
      return Fail(absl::StrFormat("%s: %s is %s bytes, %s has %s", where, param.name, bytes.ToString(), buffer.name,
                                  buffer.bytes.ToString()));
    }
    const bool writes = param.mode != kir::Mode::kIn;
    if (writes && (buffer.home == Home::kParam || buffer.home == Home::kConstant || buffer.home == Home::kInput)) {
      return Fail(absl::StrFormat("%s writes %s, which is not to be written", where, buffer.name));
    }
    if (!writes && IsOurs(buffer) && !defined.contains(argument.buffer))
      return Fail(absl::StrFormat("%s reads %s before it is written", where, buffer.name));
    for (size_t other = 0; writes && other < p; ++other) {
      if (launch.arguments[other] == argument && param.inplace == kernel.params[other].name) continue;
      if (launch.arguments[other].buffer == argument.buffer) {
        return Fail(absl::StrFormat("%s writes %s under another argument too", where, buffer.name));
      }
    }
  }
  for (size_t p = 0; p < launch.arguments.size(); ++p) {
    if (kernel.params[p].mode != kir::Mode::kIn) defined.insert(launch.arguments[p].buffer);
  }
  return absl::OkStatus();
}

// The steps of the bodies, in the order in which they may run: what is read has been written by then, whichever branch
// ran and however many trips a loop made.
class StepVerifier {
 public:
  StepVerifier(const Plan& plan, std::set<int> defined) : plan_(plan), defined_(std::move(defined)) {}

  Status Verify(int body) {
    if (body < 0 || body >= static_cast<int>(plan_.bodies.size())) return Fail("a step of no body");
    for (const Step& step : plan_.bodies[body].steps) {
      QUERN_RETURN_IF_ERROR(std::visit([&](const auto& kind) { return VerifyStep(kind, body); }, step));
    }
    return absl::OkStatus();
  }
  // Every launch is part of one step.
  Status Finish() const {
    if (next_ == static_cast<int>(plan_.launches.size())) return absl::OkStatus();
    return Fail(absl::StrCat("no step runs launch ", next_));
  }

 private:
  Status VerifyStep(const Run& run, int body) {
    if (run.first != next_ || run.end <= run.first || run.end > static_cast<int>(plan_.launches.size()))
      return Fail(absl::StrFormat("launches %d to %d stand where launch %d is expected", run.first, run.end, next_));
    for (; next_ < run.end; ++next_) {
      const Launch& launch = plan_.launches[next_];
      if (launch.body != body) return Fail(absl::StrFormat("%s stands in another body", launch.label));
      QUERN_RETURN_IF_ERROR(VerifyLaunch(plan_, launch, defined_));
    }
    return absl::OkStatus();
  }

  Status VerifyStep(const If& step, int) {
    QUERN_RETURN_IF_ERROR(VerifyRead(step.predicate, step.label));
    const std::set<int> before = defined_;
    QUERN_RETURN_IF_ERROR(Verify(step.then));
    const std::set<int> then = std::exchange(defined_, before);
    QUERN_RETURN_IF_ERROR(Verify(step.otherwise));
    std::set<int> both;
    std::set_intersection(then.begin(), then.end(), defined_.begin(), defined_.end(), std::inserter(both, both.end()));
    defined_ = std::move(both);
    return absl::OkStatus();
  }

  Status VerifyStep(const While& step, int) {
    QUERN_RETURN_IF_ERROR(Begin(step.carries, step.label));
    const std::set<int> before = defined_;
    QUERN_RETURN_IF_ERROR(Verify(step.cond));
    QUERN_RETURN_IF_ERROR(VerifyRead(step.predicate, step.label));
    QUERN_RETURN_IF_ERROR(Verify(step.body));
    QUERN_RETURN_IF_ERROR(End(step.carries, step.label));
    defined_ = before;
    return absl::OkStatus();
  }

  Status VerifyStep(const Scan& step, int) {
    QUERN_RETURN_IF_ERROR(Begin(step.carries, step.label));
    const std::set<int> before = defined_;
    std::vector<int> made;
    for (const Row& row : step.rows) {
      QUERN_RETURN_IF_ERROR(VerifyLoopBuffer(row.buffer, step.label));
      const Buffer& whole = plan_.buffers[row.whole.buffer];
      if (AlignmentOf(row.stride, AlignmentOf(row.whole.offset, AlignmentOf(whole))) < plan_.buffers[row.buffer].align)
        return Fail(absl::StrFormat("%s: rows of %s are less aligned than they say", step.label, whole.name));
      if (Defined(row.whole.buffer))
        defined_.insert(row.buffer);
      else
        made.push_back(row.whole.buffer);
    }
    QUERN_RETURN_IF_ERROR(Verify(step.body));
    for (const Row& row : step.rows) {
      if (!defined_.contains(row.buffer)) return Fail(absl::StrFormat("%s: no trip writes a row", step.label));
    }
    QUERN_RETURN_IF_ERROR(End(step.carries, step.label));
    defined_ = before;
    defined_.insert(made.begin(), made.end());
    return absl::OkStatus();
  }

  Status VerifyStep(const Count& step, int) {
    if (!plan_.ranges.contains(step.symbol)) return Fail(absl::StrFormat("%s finds no symbol of the plan", step.label));
    return VerifyRead(step.count, step.label);
  }

  Status Begin(const std::vector<Carry>& carries, const std::string& label) {
    for (const Carry& carry : carries) {
      QUERN_RETURN_IF_ERROR(VerifyRead(carry.initial, label));
      QUERN_RETURN_IF_ERROR(VerifyLoopBuffer(carry.current, label));
      QUERN_RETURN_IF_ERROR(VerifyLoopBuffer(carry.next, label));
      const Buffer& initial = plan_.buffers[carry.initial.buffer];
      int64_t align = AlignmentOf(carry.initial.offset, AlignmentOf(initial));
      for (const int place : carry.places) align = std::min(align, AlignmentOf(plan_.buffers[place]));
      if (plan_.buffers[carry.current].align > align)
        return Fail(absl::StrFormat("%s: a carry is less aligned than it says", label));
      defined_.insert(carry.current);
    }
    return absl::OkStatus();
  }
  Status End(const std::vector<Carry>& carries, const std::string& label) const {
    for (const Carry& carry : carries) {
      if (!defined_.contains(carry.next)) return Fail(absl::StrFormat("%s: no trip writes a carry", label));
    }
    return absl::OkStatus();
  }

  Status VerifyLoopBuffer(int buffer, const std::string& label) const {
    if (buffer >= 0 && buffer < static_cast<int>(plan_.buffers.size()) && plan_.buffers[buffer].home == Home::kLoop)
      return absl::OkStatus();
    return Fail(absl::StrFormat("%s moves a buffer that is not the loop's", label));
  }
  Status VerifyRead(const Argument& argument, const std::string& label) const {
    if (argument.buffer < 0 || argument.buffer >= static_cast<int>(plan_.buffers.size()))
      return Fail(label + " reads no buffer");
    if (Defined(argument.buffer)) return absl::OkStatus();
    return Fail(absl::StrFormat("%s reads %s before it is written", label, plan_.buffers[argument.buffer].name));
  }
  bool Defined(int buffer) const { return !IsOurs(plan_.buffers[buffer]) || defined_.contains(buffer); }

  const Plan& plan_;
  std::set<int> defined_;
  int next_ = 0;
};

}  // namespace

Status Verify(const Plan& plan) {
  std::set<int> defined;
  for (const Launch& launch : plan.once) {
    if (!plan.kernels[launch.kernel].symbols.empty()) return Fail("parameter-only work depends on a symbol");
    QUERN_RETURN_IF_ERROR(VerifyLaunch(plan, launch, defined));
  }
  StepVerifier steps(plan, std::move(defined));
  QUERN_RETURN_IF_ERROR(steps.Verify(0));
  QUERN_RETURN_IF_ERROR(steps.Finish());
  // In the order in which they begin: whoever begins behind the end of one never meets it.
  const std::map<int, Lifetime> lifetimes = Lifetimes(plan);
  std::vector<std::pair<int, Lifetime>> live(lifetimes.begin(), lifetimes.end());
  std::sort(live.begin(), live.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.first, a.first) < std::pair(b.second.first, b.first);
  });
  for (auto a = live.begin(); a != live.end(); ++a) {
    const Buffer& first = plan.buffers[a->first];
    if (AlignmentOf(first.offset, kBufferAlign) < kBufferAlign) return Fail(first.name + " is not aligned");
    if (!first.offset.ProvablyAtLeast(Extent(0), plan.ranges) ||
        !plan.arena_bytes.ProvablyAtLeast(first.offset + first.bytes, plan.ranges)) {
      return Fail(absl::StrFormat("%s at %s, of %s bytes, does not lie in the arena of %s", first.name,
                                  first.offset.ToString(), first.bytes.ToString(), plan.arena_bytes.ToString()));
    }
    for (auto b = std::next(a); b != live.end() && b->second.first <= a->second.last; ++b) {
      const Buffer& second = plan.buffers[b->first];
      if (!Apart(first.offset, first.bytes, second.offset, second.bytes, plan.ranges)) {
        return Fail(absl::StrFormat("%s and %s are live at once and share memory", first.name, second.name));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::lir
