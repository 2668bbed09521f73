#include "runtime/bound_steps.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/diagnostic.h"
#include "base/overloaded.h"

namespace quern {

StatusOr<int64_t> StepHost::ReadCount(uint64_t) {
  return absl::UnimplementedError("sizes that runs find (Counted) are found on this machine's processor alone");
}
void StepHost::Bind(int, int64_t) {}

StatusOr<BoundSteps> BoundSteps::Compile(std::span<const lir::Body> bodies, std::span<const std::string> names) {
  const auto place = [&](const lir::Argument& argument) -> StatusOr<Place> {
    QUERN_ASSIGN(Polynomial offset, Polynomial::Compile(argument.offset, names));
    return Place{argument.buffer, std::move(offset)};
  };
  const auto carries = [&](const std::vector<lir::Carry>& from) -> StatusOr<std::vector<Carry>> {
    std::vector<Carry> made;
    for (const lir::Carry& carry : from) {
      QUERN_ASSIGN(Place initial, place(carry.initial));
      made.push_back({std::move(initial), carry.current, carry.next, carry.places});
    }
    return made;
  };
  const Overloaded compile = {
      [](const lir::Run& run) -> StatusOr<Step> { return Step(run); },
      [&](const lir::If& from) -> StatusOr<Step> {
        QUERN_ASSIGN(Place predicate, place(from.predicate));
        return Step(If{std::move(predicate), from.then, from.otherwise});
      },
      [&](const lir::While& from) -> StatusOr<Step> {
        While made{{}, from.cond, from.body, {}, from.max, from.label};
        QUERN_ASSIGN(made.predicate, place(from.predicate));
        QUERN_ASSIGN(made.carries, carries(from.carries));
        return Step(std::move(made));
      },
      [&](const lir::Scan& from) -> StatusOr<Step> {
        Scan made{from.body, {}, from.reverse, {}, {}};
        QUERN_ASSIGN(made.length, Polynomial::Compile(from.length, names));
        QUERN_ASSIGN(made.carries, carries(from.carries));
        for (const lir::Row& row : from.rows) {
          QUERN_ASSIGN(Place whole, place(row.whole));
          QUERN_ASSIGN(Polynomial stride, Polynomial::Compile(row.stride, names));
          made.rows.push_back({row.buffer, std::move(whole), std::move(stride)});
        }
        return Step(std::move(made));
      },
      [&](const lir::Count& from) -> StatusOr<Step> {
        QUERN_ASSIGN(Place count, place(from.count));
        QUERN_ASSIGN(Requirements requirements, Requirements::Create(from.requirements, names));
        const auto symbol = std::find(names.begin(), names.end(), from.symbol);
        if (symbol == names.end()) return absl::InternalError(absl::StrCat("no symbol is called ", from.symbol));
        return Step(Count{std::move(count), static_cast<int>(symbol - names.begin()), from.symbol, from.range,
                          std::move(requirements), from.label});
      },
  };
  BoundSteps bound;
  bound.straight_ = true;
  for (const lir::Body& body : bodies) {
    std::vector<Step>& steps = bound.bodies_.emplace_back();
    for (const lir::Step& step : body.steps) {
      QUERN_ASSIGN(Step made, std::visit(compile, step));
      bound.straight_ = bound.straight_ && std::holds_alternative<lir::Run>(made);
      steps.push_back(std::move(made));
    }
  }
  return bound;
}

class BoundSteps::Runner {
 public:
  Runner(const BoundSteps& steps, std::span<const int64_t> values, StepHost& host)
      : steps_(steps), values_(values), host_(host) {}

  Status RunBody(int body) {
    for (const Step& step : steps_.bodies_[body]) {
      QUERN_RETURN_IF_ERROR(host_.Poll());
      QUERN_RETURN_IF_ERROR(std::visit([&](const auto& kind) { return RunStep(kind); }, step));
    }
    return absl::OkStatus();
  }

 private:
  Status RunStep(const lir::Run& run) { return host_.Launch(run.first, run.end); }

  Status RunStep(const If& step) {
    QUERN_ASSIGN(const uint8_t holds, host_.Read(AddressOf(step.predicate)));
    return RunBody(holds != 0 ? step.then : step.otherwise);
  }

  Status RunStep(const While& step) {
    Begin(step.carries);
    for (int64_t trip = 0;; ++trip) {
      QUERN_RETURN_IF_ERROR(host_.Poll());
      QUERN_RETURN_IF_ERROR(RunBody(step.cond));
      QUERN_ASSIGN(const uint8_t more, host_.Read(AddressOf(step.predicate)));
      if (more == 0) return absl::OkStatus();
      if (step.max > 0 && trip == step.max) {
        return ToStatus({DiagnosticCode::kOutOfRange, "", "the number of trips", absl::StrCat("0..", step.max),
                         absl::StrCat("more than ", step.max), step.label});
      }
      QUERN_RETURN_IF_ERROR(RunBody(step.body));
      Exchange(step.carries, trip);
    }
  }

  Status RunStep(const Scan& step) {
    Begin(step.carries);
    const int64_t length = step.length.Evaluate(values_);
    for (int64_t trip = 0; trip < length; ++trip) {
      QUERN_RETURN_IF_ERROR(host_.Poll());
      const int64_t t = step.reverse ? length - 1 - trip : trip;
      for (const Row& row : step.rows)
        host_.Rebase(row.buffer, AddressOf(row.whole) + static_cast<uint64_t>(t * row.stride.Evaluate(values_)));
      QUERN_RETURN_IF_ERROR(RunBody(step.body));
      Exchange(step.carries, trip);
    }
    return absl::OkStatus();
  }

  Status RunStep(const Count& step) {
    QUERN_ASSIGN(const int64_t count, host_.ReadCount(AddressOf(step.count)));
    if (count < step.range.low || count > step.range.high) {
      return ToStatus({DiagnosticCode::kOutOfRange, "", absl::StrCat("symbol ", step.name),
                       absl::StrCat(step.range.low, "..", step.range.high), absl::StrCat(count), step.label});
    }
    host_.Bind(step.symbol, count);
    return step.requirements.Check(values_, step.label);
  }

  void Begin(const std::vector<Carry>& carries) {
    for (const Carry& carry : carries) {
      host_.Rebase(carry.current, AddressOf(carry.initial));
      host_.Rebase(carry.next, host_.Base(carry.places[0]));
    }
  }
  // After trip `trip`: what was next is current, and the next one goes where the current one was made.
  void Exchange(const std::vector<Carry>& carries, int64_t trip) {
    for (const Carry& carry : carries) {
      host_.Rebase(carry.current, host_.Base(carry.next));
      host_.Rebase(carry.next, host_.Base(carry.places[(trip + 1) % 2]));
    }
  }
  uint64_t AddressOf(const Place& place) const {
    return host_.Base(place.buffer) + static_cast<uint64_t>(place.offset.Evaluate(values_));
  }

  const BoundSteps& steps_;
  const std::span<const int64_t> values_;
  StepHost& host_;
};

Status BoundSteps::Run(std::span<const int64_t> values, StepHost& host) const {
  return Runner(*this, values, host).RunBody(0);
}

}  // namespace quern
