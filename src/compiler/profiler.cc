// Profiler of the public interface: a log of an executable's runs, and the reports that are made from it.

#include "quern/profile.h"

#include <utility>

#include "cache/folder.h"
#include "compiler/kernel_stages.h"
#include "compiler/profiled.h"
#include "compiler/public_error.h"
#include "profile/diff.h"
#include "profile/html.h"
#include "profile/json.h"
#include "profile/profile.h"
#include "profile/table.h"
#include "profile/trace.h"

namespace quern {

struct Profiler::State {
  compiler::Profiled profiled;
  ProfilerOptions options;
  profile::Machine machine;
  bool measured_again = false;  // since a kernel was faster than what was known of the machine
  std::string counters;         // why there are none
  std::vector<profile::Phase> phases;
  std::unique_ptr<RunLog> log;

  ~State() { profiled.executable->Record(nullptr); }

  void Start() {
    log = std::make_unique<RunLog>(profiled.executable->threads(),
                                   RunLog::Options{.counters = options.counters && counters.empty()});
    profiled.executable->Record(log.get());
  }

  StatusOr<profile::Profile> Collect() {
    StatusOr<profile::Profile> profile = CollectBeside();
    if (!profile.ok() || !profile->AbovePeaks() || measured_again) return profile;
    measured_again = true;
    const StatusOr<profile::Machine> again = Measured(true);
    if (!again.ok()) return profile;
    machine = *again;
    return CollectBeside();
  }

  // From the file, or measured; `fresh`: measured, whatever is there.
  StatusOr<profile::Machine> Measured(bool fresh) const {
    Executable& executable = *profiled.executable;
    return profile::MachineOf(executable.cache().engine().target().name, executable.pool(),
                              {.folder = cache::UserFolder().value_or(""), .fresh = fresh});
  }

  StatusOr<profile::Profile> CollectBeside() const {
    return profile::Collect(*profiled.executable, *log, phases, machine,
                            {.model = profiled.model,
                             .token_symbol = profiled.token_symbol,
                             .exact = profiled.exact,
                             .context = profiled.context,
                             .steps = *profiled.steps,
                             .counters = options.counters ? counters : "not asked for"});
  }

  template <typename Write>
  Result<std::string> Report(const Write& write) {
    const StatusOr<profile::Profile> profile = Collect();
    if (!profile.ok()) return Result<std::string>::Failed(compiler::ErrorOf(profile.status(), profiled.model));
    return write(*profile);
  }
};

Result<Profiler> Profiler::AttachTo(const compiler::Profiled& profiled, const ProfilerOptions& options) {
  auto state = std::make_unique<State>();
  state->profiled = profiled;
  state->options = options;
  // Costs and code are read off the bodies of kernels.
  if (const Status unsealed = profiled.executable->Unseal(); !unsealed.ok())
    return Result<Profiler>::Failed(compiler::ErrorOf(unsealed, profiled.model));
  StatusOr<profile::Machine> machine = state->Measured(options.probe);
  if (!machine.ok()) return Result<Profiler>::Failed(compiler::ErrorOf(machine.status(), profiled.model));
  state->machine = *std::move(machine);
  if (options.counters) {
    // Every thread of the process is allowed what this one is.
    CounterGroup trial;
    if (const Status status = trial.Open(HardwareCounters()); !status.ok())
      state->counters = std::string(status.message());
  }
  state->Start();
  Profiler profiler(std::move(state));
  profiler.Phase("run");
  return profiler;
}

Profiler::Profiler(std::unique_ptr<State> state) : state_(std::move(state)) {}
Profiler::Profiler(Profiler&&) noexcept = default;
Profiler& Profiler::operator=(Profiler&&) noexcept = default;
Profiler::~Profiler() = default;

void Profiler::Phase(std::string_view name, bool warm_up) {
  std::vector<profile::Phase>& phases = state_->phases;
  size_t mark = 0;
  while (mark < phases.size() && (phases[mark].name != name || phases[mark].warm_up != warm_up)) ++mark;
  if (mark == phases.size()) phases.push_back({std::string(name), warm_up});
  state_->log->Mark(static_cast<int>(mark));
}

CallerSpan Profiler::Span(std::string_view name) { return {this, std::string(name)}; }

void Profiler::AddSpan(std::string_view name, Tick begin, Tick end) {
  state_->log->AddSpan(std::string(name), begin.count, end.count);
}

CallerSpan::CallerSpan(Profiler* profiler, std::string name)
    : profiler_(profiler), name_(std::move(name)), begin_(Tick::Now()) {}
CallerSpan::CallerSpan(CallerSpan&& other) noexcept
    : profiler_(std::exchange(other.profiler_, nullptr)), name_(std::move(other.name_)), begin_(other.begin_) {}
CallerSpan::~CallerSpan() {
  if (profiler_ != nullptr) profiler_->AddSpan(name_, begin_, Tick::Now());
}

void Profiler::Clear() {
  const int mark = state_->log->mark();
  state_->Start();
  state_->log->Mark(mark);
}

Result<std::string> Profiler::Table(int top, size_t columns) {
  return state_->Report([&](const profile::Profile& profile) { return profile::TableText(profile, {top, columns}); });
}

Result<std::string> Profiler::Json() { return state_->Report(profile::JsonText); }

Result<std::string> Profiler::Html() {
  StatusOr<profile::Profile> profile = state_->Collect();
  const Status status = profile.ok() ? compiler::AddStages(state_->profiled, *profile) : profile.status();
  if (!status.ok()) return Result<std::string>::Failed(compiler::ErrorOf(status, state_->profiled.model));
  return profile::HtmlText(*profile);
}

Result<Roofline> Profiler::Roof() {
  const StatusOr<profile::Profile> profile = state_->Collect();
  if (!profile.ok()) return Result<Roofline>::Failed(compiler::ErrorOf(profile.status(), state_->profiled.model));
  if (profile->sections.empty()) {
    Error none;
    none.code = ErrorCode::kMissing;
    none.message = state_->profiled.model + ": no run was recorded";
    return Result<Roofline>::Failed(none);
  }
  const profile::Section& section = profile->sections.back();
  const profile::Rates rates = profile->StepRatesOf(section);
  const profile::MemoryLevel& memory = profile->machine.memory[section.memory];
  const auto steps = static_cast<double>(section.steps);
  Roofline roof;
  roof.launches = static_cast<int>(section.sums.calls / section.steps);
  roof.operations = section.sums.operations() / steps;
  roof.bytes = static_cast<double>(section.sums.read + section.sums.written) / steps;
  roof.floor_ns = rates.roof_ns;
  roof.bound = std::string(Name(rates.bound));
  roof.memory = memory.name;
  roof.threads = profile->threads;
  roof.memory_gbps = memory.gbps;
  roof.f32_gflops = profile->machine.f32_gflops;
  roof.bf16_gflops = profile->machine.bf16_gflops;
  roof.int8_gops = profile->machine.int8_gops;
  return roof;
}

Result<std::string> ProfileDiff(std::string_view before, std::string_view after, size_t columns) {
  StatusOr<std::string> text = profile::DiffText(before, after, columns);
  if (!text.ok()) return Result<std::string>::Failed(compiler::ErrorOf(text.status(), "profiles"));
  return *std::move(text);
}

Result<std::string> Profiler::Trace() { return state_->Report(profile::TraceText); }

}  // namespace quern
