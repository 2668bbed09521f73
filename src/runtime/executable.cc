#include "runtime/executable.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/ticks.h"
#include "lir/kernel_symbols.h"
#include "lir/lifetimes.h"
#include "lir/sealed.h"

namespace quern {

struct Executable::State_ {
  RunSizes sizes;
  std::vector<Variant> variants;
  ExecutableOptions options;
  std::vector<std::unique_ptr<BoundPlan>> plans;  // by variant; null until it is needed
  std::vector<int64_t> runs;                      // by variant
  SharedMemory memory;
  std::map<std::string, Memory, std::less<>> aligned_params;
  std::map<std::string, std::function<void()>, std::less<>> releases;  // of parameters that are still read
  bool to_release = false;  // one of them was bound, and not all variants have been compiled since

  ~State_() {
    plans.clear();
    for (const auto& [name, release] : releases) release();
  }
  std::vector<Memory> scratch;
  std::vector<void*> scratch_pointers;
  BoundPlan* last = nullptr;
  std::vector<int64_t> last_values;  // of the last run that went well
  RunLog* log = nullptr;
  std::vector<CompiledVariant> compiled;
  Report report;
  std::atomic_flag busy;
};

Executable::Executable(std::unique_ptr<State_> state) : s_(std::move(state)) {}
Executable::~Executable() = default;

const Signature& Executable::signature() const { return s_->sizes.signature(); }
const Executable::Report& Executable::report() const { return s_->report; }
Binding Executable::last_sizes() const {
  Binding sizes;
  for (size_t n = 0; n < s_->last_values.size(); ++n) sizes[s_->sizes.names()[n]] = s_->last_values[n];
  return sizes;
}
const BoundPlan* Executable::last() const { return s_->last; }
void Executable::Record(RunLog* log) { s_->log = log; }
int Executable::variants() const { return static_cast<int>(s_->variants.size()); }
int64_t Executable::runs(int variant) const { return s_->runs[variant]; }
const SymbolRanges& Executable::guard(int variant) const { return s_->variants[variant].guard; }
const BoundPlan* Executable::plan(int variant) const { return s_->plans[variant].get(); }
const std::vector<Executable::CompiledVariant>& Executable::compiled() const { return s_->compiled; }
const KernelCache& Executable::cache() const { return *s_->options.cache; }
ThreadPool& Executable::pool() const { return *s_->options.pool; }

StatusOr<std::unique_ptr<Executable>> Executable::Create(Signature signature, std::vector<Variant> variants,
                                                         ExecutableOptions options) {
  std::vector<SymbolRanges> guards;
  for (const Variant& variant : variants) guards.push_back(variant.guard);
  QUERN_ASSIGN(RunSizes sizes, RunSizes::Create(std::move(signature), guards));
  auto state = std::make_unique<State_>();
  State_& s = *state;
  s.sizes = std::move(sizes);
  s.variants = std::move(variants);
  s.options = std::move(options);
  s.plans.resize(s.variants.size());
  s.runs.resize(s.variants.size());
  for (const Port& port : s.sizes.signature().states) {
    const std::optional<int64_t> most = BytesOf(port, false).UpperBound(s.sizes.signature().symbols);
    if (!most)
      return absl::InvalidArgumentError(
          absl::StrFormat("state %s has no largest size: %s", port.name, port.type.ToString()));
    QUERN_ASSIGN(Memory memory, Memory::Allocate(*most));
    s.memory.states[port.name] = std::move(memory);
  }
  return std::unique_ptr<Executable>(new Executable(std::move(state)));
}

StatusOr<int> Executable::InputIndex(std::string_view name) const { return s_->sizes.InputIndex(name); }

Status Executable::BindParam(std::string_view name, std::span<const uint8_t> bytes, std::function<void()> release) {
  const Exclusive exclusive(s_->busy);
  if (!exclusive.held()) return s_->sizes.Fail(DiagnosticCode::kBusy, "", "", "");
  QUERN_ASSIGN(const Port* const port, s_->sizes.CheckParam(name, static_cast<int64_t>(bytes.size())));
  if (bytes.data() == nullptr && !bytes.empty())
    return s_->sizes.Fail(DiagnosticCode::kMissing, absl::StrCat("memory of parameter ", port->name), "", "");
  State_& s = *s_;
  Memory copy;
  if (reinterpret_cast<uintptr_t>(bytes.data()) % lir::GivenParamAlign(port->type.dtype) != 0) {
    QUERN_ASSIGN(copy, Memory::Allocate(static_cast<int64_t>(bytes.size())));
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    bytes = copy.bytes();
  }
  // From here on nothing fails: what was bound before is no longer read.
  for (std::unique_ptr<BoundPlan>& plan : s.plans) plan.reset();
  s.last = nullptr;
  s.memory.once.Forget(port->name);
  s.memory.params[port->name] = bytes;
  const auto before = s.releases.extract(port->name);
  const bool copied = copy.size() > 0;
  s.aligned_params.erase(port->name);
  if (copied) s.aligned_params[port->name] = std::move(copy);
  if (release != nullptr && !copied) {
    s.releases[port->name] = std::move(release);
    s.to_release = true;
  }
  if (before) before.mapped()();
  if (release != nullptr && copied) release();
  return absl::OkStatus();
}

Status Executable::Compile(int variant) {
  State_& s = *s_;
  QUERN_RETURN_IF_ERROR(CompileOne(variant));
  if (!s.to_release || s.options.stepping.observer != nullptr) return absl::OkStatus();
  s.to_release = false;
  bool all = true;  // a variant that does not compile may read whatever there is: when it is asked for it says why
  for (int other = 0; other < static_cast<int>(s.plans.size()); ++other) all = CompileOne(other).ok() && all;
  if (all) ReleasePacked();
  return absl::OkStatus();
}

void Executable::ReleasePacked() {
  State_& s = *s_;
  std::set<std::string_view> read;
  for (const std::unique_ptr<BoundPlan>& plan : s.plans) {
    for (const int b : lir::ReadByRuns(plan->plan())) {
      const lir::Buffer& buffer = plan->plan().buffers[b];
      if (buffer.home == lir::Home::kParam) read.insert(buffer.name);
    }
  }
  for (auto entry = s.releases.begin(); entry != s.releases.end();) {
    if (read.contains(entry->first)) {
      ++entry;
      continue;
    }
    s.memory.params[entry->first] = {};
    const std::function<void()> release = std::move(entry->second);
    entry = s.releases.erase(entry);
    release();
  }
}

Status Executable::CompileOne(int variant) {
  State_& s = *s_;
  if (s.plans[variant] != nullptr) return absl::OkStatus();
  for (const Port& port : s.sizes.signature().params) {
    if (!s.memory.params.contains(port.name))
      return s.sizes.Fail(DiagnosticCode::kMissing, absl::StrCat("parameter ", port.name), "", "");
  }
  const int64_t start = SteadyNs();
  int64_t planned = start;
  const KernelCache::Report before = s.options.cache->report();
  QUERN_ASSIGN(std::unique_ptr<BoundPlan> bound, BindOne(variant, planned));
  const int64_t compiled = SteadyNs();
  // A variant counts as compiled only when all that its runs need is there.
  QUERN_RETURN_IF_ERROR(ReserveScratch(std::max(bound->scratch_bytes(), int64_t{64})));
  s.plans[variant] = std::move(bound);
  s.runs[variant] = 0;
  ++s.report.variants;
  s.report.plan_ns += planned - start;
  s.report.compile_ns += compiled - planned;
  s.compiled.push_back({variant, start, planned, compiled});
  if (s.options.log && s.plans[variant]->plan().sealed != nullptr) {
    s.options.log(absl::StrFormat("found the plan of the variant for %s: %u launches, %.1f ms",
                                  GuardText(s.variants[variant].guard), s.plans[variant]->plan().launches.size(),
                                  (compiled - start) * 1e-6));
  } else if (s.options.log) {
    const KernelCache::Report after = s.options.cache->report();
    s.options.log(
        absl::StrFormat("compiled the variant for %s: %u launches, %d new kernels, %.1f ms planning, %.1f ms compiling",
                        GuardText(s.variants[variant].guard), s.plans[variant]->plan().launches.size(),
                        after.compiled - before.compiled, (planned - start) * 1e-6, (compiled - planned) * 1e-6));
  }
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<BoundPlan>> Executable::BindOne(int variant, int64_t& planned) {
  State_& s = *s_;
  const auto bind = [&](lir::Plan plan, std::vector<std::string> symbols) {
    planned = SteadyNs();
    return BoundPlan::Create(std::move(plan), s.sizes.names(), std::move(symbols), *s.options.cache, s.memory,
                             *s.options.pool, {s.options.stepping.observer, variant, s.options.stepping.substitute});
  };
  const bool kept = s.options.plans.find != nullptr && s.options.stepping.observer == nullptr;
  if (std::optional<lir::Plan> found = kept ? s.options.plans.find(variant) : std::nullopt) {
    std::vector<std::string> symbols;
    for (const lir::SealedKernel& kernel : found->sealed->kernels) symbols.push_back(kernel.symbol);
    StatusOr<std::unique_ptr<BoundPlan>> bound = bind(*std::move(found), std::move(symbols));
    if (!absl::IsNotFound(bound.status())) return bound;  // else its code has been collected since
  }
  QUERN_ASSIGN(lir::Plan plan, s.variants[variant].plan());
  std::vector<std::string> symbols = lir::KernelSymbols(plan, s.variants[variant].guard);
  QUERN_ASSIGN(std::unique_ptr<BoundPlan> bound, bind(std::move(plan), std::move(symbols)));
  if (kept) s.options.plans.keep(variant, *bound);
  return bound;
}

Status Executable::Unseal() {
  State_& s = *s_;
  const Exclusive exclusive(s.busy);
  if (!exclusive.held()) return s.sizes.Fail(DiagnosticCode::kBusy, "", "", "");
  s.options.plans = {};
  for (size_t v = 0; v < s.plans.size(); ++v) {
    if (s.plans[v] == nullptr || s.plans[v]->plan().sealed == nullptr) continue;
    if (s.last == s.plans[v].get()) s.last = nullptr;
    s.plans[v].reset();
    --s.report.variants;
  }
  std::erase_if(s.compiled, [&](const CompiledVariant& made) { return s.plans[made.variant] == nullptr; });
  return absl::OkStatus();
}

// Gives every worker the scratch that the hungriest kernel so far asks. After an error they have what they had.
Status Executable::ReserveScratch(int64_t bytes) {
  State_& s = *s_;
  if (!s.scratch.empty() && s.scratch[0].size() >= bytes) return absl::OkStatus();
  std::vector<Memory> scratch;
  std::vector<void*> pointers;
  for (int w = 0; w < s.options.pool->threads(); ++w) {
    QUERN_ASSIGN(Memory memory, Memory::Allocate(bytes));
    pointers.push_back(memory.data());
    scratch.push_back(std::move(memory));
  }
  s.scratch = std::move(scratch);
  s.scratch_pointers = std::move(pointers);
  return absl::OkStatus();
}

StatusOr<int> Executable::DropUnused() {
  State_& s = *s_;
  const Exclusive exclusive(s.busy);
  if (!exclusive.held() || s.log != nullptr) return s.sizes.Fail(DiagnosticCode::kBusy, "", "", "");
  int dropped = 0;
  std::set<Hash128> packed;
  int64_t scratch = 64;
  for (size_t v = 0; v < s.plans.size(); ++v) {
    std::unique_ptr<BoundPlan>& plan = s.plans[v];
    if (plan != nullptr && s.runs[v] == 0) {
      if (s.last == plan.get()) s.last = nullptr;
      plan.reset();
      ++dropped;
    }
    s.runs[v] = 0;
    if (plan == nullptr) continue;
    packed.insert(plan->packed().begin(), plan->packed().end());
    scratch = std::max(scratch, plan->scratch_bytes());
  }
  if (dropped == 0) return 0;
  s.report.variants -= dropped;
  std::erase_if(s.compiled, [&](const CompiledVariant& made) { return s.plans[made.variant] == nullptr; });
  s.memory.once.Keep(packed, [&](const std::string& param) {
    const auto bound = s.memory.params.find(param);
    return bound != s.memory.params.end() && bound->second.data() == nullptr;
  });
  s.options.cache->Collect();
  for (std::unique_ptr<BoundPlan>& plan : s.plans) {
    if (plan != nullptr) plan->Unplace();
  }
  s.memory.arena = Memory();
  if (!s.scratch.empty() && s.scratch[0].size() > scratch) {
    s.scratch.clear();
    QUERN_RETURN_IF_ERROR(ReserveScratch(scratch));
  }
  s.report.arena_bytes = 0;
  s.report.packed_bytes = s.memory.once.bytes();
  return dropped;
}

Executable::MemoryReport Executable::memory() const {
  const State_& s = *s_;
  MemoryReport report{.arena = s.memory.arena.size(), .packed = s.memory.once.bytes()};
  for (const auto& [name, memory] : s.memory.states) report.states += memory.size();
  for (const auto& [name, memory] : s.aligned_params) report.copied += memory.size();
  for (const Memory& memory : s.scratch) report.scratch += memory.size();
  for (const std::unique_ptr<BoundPlan>& plan : s.plans) {
    if (plan != nullptr) report.constants += plan->constant_bytes();
  }
  report.code = s.options.cache->engine().live_bytes();
  return report;
}

Status Executable::Prepare(const Binding& symbols) {
  const Exclusive exclusive(s_->busy);
  if (!exclusive.held()) return s_->sizes.Fail(DiagnosticCode::kBusy, "", "", "");
  QUERN_ASSIGN(const int variant, s_->sizes.Choose(symbols));
  return Compile(variant);
}

Status Executable::CheckApart(std::span<const MutableBytes> outputs) const {
  const auto check = [&](const char* kind, const std::string& name, std::span<const uint8_t> memory) -> Status {
    const auto from = reinterpret_cast<uintptr_t>(memory.data());
    for (size_t o = 0; o < outputs.size(); ++o) {
      const auto begin = reinterpret_cast<uintptr_t>(outputs[o].data);
      const auto bytes = static_cast<uintptr_t>(outputs[o].bytes);
      if (bytes == 0 || memory.empty() || begin >= from + memory.size() || from >= begin + bytes) continue;
      return absl::InvalidArgumentError(absl::StrFormat("output %s overlaps %s %s in memory (in %s)",
                                                        s_->sizes.signature().outputs[o].name, kind, name,
                                                        s_->sizes.signature().name));
    }
    return absl::OkStatus();
  };
  for (const auto& [name, bytes] : s_->memory.params) QUERN_RETURN_IF_ERROR(check("parameter", name, bytes));
  for (const auto& [name, memory] : s_->memory.states) QUERN_RETURN_IF_ERROR(check("state", name, memory.bytes()));
  return absl::OkStatus();
}

Status Executable::Run(std::span<const ConstBytes> inputs, std::span<const MutableBytes> outputs,
                       const Binding& symbols) {
  State_& s = *s_;
  const Exclusive exclusive(s.busy);
  if (!exclusive.held()) return s.sizes.Fail(DiagnosticCode::kBusy, "", "", "");
  QUERN_ASSIGN(const int variant, s.sizes.Choose(symbols));
  QUERN_RETURN_IF_ERROR(s.sizes.CheckMemory(inputs, outputs));
  QUERN_RETURN_IF_ERROR(Compile(variant));
  const int64_t start = SteadyNs();
  BoundPlan& plan = *s.plans[variant];
  QUERN_RETURN_IF_ERROR(plan.Bind(s.sizes.values(), s.memory));
  for (size_t i = 0; i < inputs.size(); ++i) plan.SetInput(s.sizes.signature().inputs[i].name, inputs[i].data);
  for (size_t i = 0; i < outputs.size(); ++i) plan.SetOutput(s.sizes.signature().outputs[i].output, outputs[i].data);
  LoggedRun* const logged = s.log == nullptr ? nullptr : &s.log->Add(variant, s.sizes.values());
  if (logged != nullptr) {
    logged->start_ns = start;
    logged->bind_ns = SteadyNs() - start;
  }
  const int64_t bound = SteadyNs();
  ++s.runs[variant];
  QUERN_RETURN_IF_ERROR(plan.Run(*s.options.pool, s.scratch_pointers, s.log, s.options.cancel));
  s.last = &plan;
  s.last_values = plan.values();
  if (logged != nullptr) logged->values = plan.values();
  s.report.bind_ns = bound - start;
  s.report.run_ns = SteadyNs() - bound;
  s.report.arena_bytes = s.memory.arena.size();
  s.report.packed_bytes = s.memory.once.bytes();
  return absl::OkStatus();
}

StatusOr<std::span<uint8_t>> Executable::State(std::string_view name) {
  QUERN_ASSIGN(const Port* const port, s_->sizes.FindState(name));
  return s_->memory.states.find(port->name)->second.bytes();
}

void Executable::ResetState() {
  for (auto& [name, memory] : s_->memory.states) {
    if (memory.size() > 0) std::memset(memory.data(), 0, static_cast<size_t>(memory.size()));
  }
}

}  // namespace quern
