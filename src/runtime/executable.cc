#include "runtime/executable.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/ticks.h"
#include "lir/kernel_symbols.h"

namespace quern {
namespace {

std::string Names(const std::vector<Port>& ports) {
  std::string names;
  for (size_t i = 0; i < ports.size() && i < 8; ++i) absl::StrAppend(&names, i == 0 ? "" : ", ", ports[i].name);
  if (ports.size() > 8) absl::StrAppend(&names, ", ... (", ports.size(), " in all)");
  return names.empty() ? "none" : names;
}

const Port* FindPort(const std::vector<Port>& ports, std::string_view name) {
  for (const Port& port : ports) {
    if (port.name == name) return &port;
  }
  return nullptr;
}

std::string RangeText(const SymbolRange& range) {
  return absl::StrCat(range.low, "..", range.high == INT64_MAX ? "" : absl::StrCat(range.high));
}

}  // namespace

std::string GuardText(const SymbolRanges& guard) {
  std::string text;
  for (const auto& [symbol, range] : guard) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", symbol);
    if (range.low == range.high) absl::StrAppend(&text, " == ", range.low);
    else absl::StrAppend(&text, " in ", range.low, "..", range.high);
  }
  return text.empty() ? "all sizes" : text;
}

struct Executable::State_ {
  Signature signature;
  std::vector<Variant> variants;
  ExecutableOptions options;
  std::vector<std::string> names;                 // symbols
  std::vector<SymbolRange> ranges;                // theirs
  std::vector<std::vector<SymbolRange>> guards;   // by variant and symbol
  std::vector<std::unique_ptr<BoundPlan>> plans;  // by variant; null until it is needed
  SharedMemory memory;
  std::map<std::string, Memory, std::less<>> aligned_params;
  std::vector<Polynomial> input_sizes, output_sizes;
  std::vector<int64_t> values;                    // of the run
  std::vector<int64_t> sized;                     // values that the byte counts below are for
  std::vector<int64_t> input_bytes, output_bytes;
  std::vector<Memory> scratch;
  std::vector<void*> scratch_pointers;
  BoundPlan* last = nullptr;
  RunLog* log = nullptr;
  std::vector<CompiledVariant> compiled;
  Report report;
  std::atomic_flag busy;
};

namespace {

// Holds `flag` for the length of a call, or says that another call does.
class Exclusive {
 public:
  explicit Exclusive(std::atomic_flag& flag) : flag_(flag), held_(!flag.test_and_set(std::memory_order_acquire)) {}
  ~Exclusive() {
    if (held_) flag_.clear(std::memory_order_release);
  }
  Exclusive(const Exclusive&) = delete;
  bool held() const { return held_; }

 private:
  std::atomic_flag& flag_;
  const bool held_;
};

}  // namespace

Executable::Executable(std::unique_ptr<State_> state) : s_(std::move(state)) {}
Executable::~Executable() = default;

const Signature& Executable::signature() const { return s_->signature; }
const Executable::Report& Executable::report() const { return s_->report; }
const BoundPlan* Executable::last() const { return s_->last; }
void Executable::Record(RunLog* log) { s_->log = log; }
const SymbolRanges& Executable::guard(int variant) const { return s_->variants[variant].guard; }
const BoundPlan* Executable::plan(int variant) const { return s_->plans[variant].get(); }
const std::vector<Executable::CompiledVariant>& Executable::compiled() const { return s_->compiled; }
const KernelCache& Executable::cache() const { return *s_->options.cache; }
ThreadPool& Executable::pool() const { return *s_->options.pool; }

Status Executable::Fail(DiagnosticCode code, std::string operand, std::string expected, std::string got) const {
  return ToStatus({code, "", std::move(operand), std::move(expected), std::move(got), s_->signature.name});
}

StatusOr<std::unique_ptr<Executable>> Executable::Create(Signature signature, std::vector<Variant> variants, ExecutableOptions options) {
  auto state = std::make_unique<State_>();
  State_& s = *state;
  s.signature = std::move(signature);
  s.variants = std::move(variants);
  s.options = std::move(options);
  s.plans.resize(s.variants.size());
  for (const auto& [name, range] : s.signature.symbols) {
    s.names.push_back(name);
    s.ranges.push_back(range);
  }
  for (const Variant& variant : s.variants) {
    std::vector<SymbolRange>& guard = s.guards.emplace_back(s.ranges);
    for (size_t i = 0; i < s.names.size(); ++i) {
      const auto range = variant.guard.find(s.names[i]);
      if (range != variant.guard.end()) guard[i] = range->second;
    }
  }
  for (const Port& port : s.signature.inputs) {
    QUERN_ASSIGN(Polynomial bytes, Polynomial::Compile(BytesOf(port, false), s.names));
    s.input_sizes.push_back(std::move(bytes));
  }
  for (const Port& port : s.signature.outputs) {
    QUERN_ASSIGN(Polynomial bytes, Polynomial::Compile(BytesOf(port, false), s.names));
    s.output_sizes.push_back(std::move(bytes));
  }
  for (const Port& port : s.signature.states) {
    const std::optional<int64_t> most = BytesOf(port, false).UpperBound(s.signature.symbols);
    if (!most) return absl::InvalidArgumentError(absl::StrFormat("state %s has no largest size: %s", port.name, port.type.ToString()));
    QUERN_ASSIGN(Memory memory, Memory::Allocate(*most));
    s.memory.states[port.name] = std::move(memory);
  }
  return std::unique_ptr<Executable>(new Executable(std::move(state)));
}

StatusOr<int> Executable::InputIndex(std::string_view name) const {
  const Port* port = FindPort(s_->signature.inputs, name);
  if (port != nullptr) return static_cast<int>(port - s_->signature.inputs.data());
  return Fail(DiagnosticCode::kUnknownName, absl::StrCat("input ", std::string(name)), Names(s_->signature.inputs), "");
}

Status Executable::BindParam(std::string_view name, std::span<const uint8_t> bytes) {
  const Exclusive exclusive(s_->busy);
  if (!exclusive.held()) return Fail(DiagnosticCode::kBusy, "", "", "");
  const Port* port = FindPort(s_->signature.params, name);
  if (port == nullptr) {
    return Fail(DiagnosticCode::kUnknownName, absl::StrCat("parameter ", std::string(name)), Names(s_->signature.params), "");
  }
  const Extent expected = BytesOf(*port, true);
  if (!expected.is_constant() || expected.constant() != static_cast<int64_t>(bytes.size())) {
    return Fail(DiagnosticCode::kShapeMismatch, absl::StrCat("parameter ", port->name),
                absl::StrCat(expected.ToString(), " bytes of ", port->type.ToString()), absl::StrCat(bytes.size(), " bytes"));
  }
  if (reinterpret_cast<uintptr_t>(bytes.data()) % lir::kParamAlign != 0) {
    QUERN_ASSIGN(Memory copy, Memory::Allocate(static_cast<int64_t>(bytes.size())));
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    bytes = copy.bytes();
    s_->aligned_params[port->name] = std::move(copy);
  }
  s_->memory.params[port->name] = bytes;
  for (std::unique_ptr<BoundPlan>& plan : s_->plans) plan.reset();
  s_->last = nullptr;
  return absl::OkStatus();
}

StatusOr<int> Executable::Choose(const Binding& symbols) {
  State_& s = *s_;
  s.values.clear();
  for (size_t i = 0; i < s.names.size(); ++i) {
    const auto value = symbols.find(s.names[i]);
    if (value == symbols.end()) return Fail(DiagnosticCode::kMissing, absl::StrCat("symbol ", s.names[i]), "", "");
    if (value->second < s.ranges[i].low || value->second > s.ranges[i].high) {
      return Fail(DiagnosticCode::kOutOfRange, absl::StrCat("symbol ", s.names[i]), RangeText(s.ranges[i]), absl::StrCat(value->second));
    }
    s.values.push_back(value->second);
  }
  if (symbols.size() != s.names.size()) {
    for (const auto& [name, value] : symbols) {
      if (!s.signature.symbols.contains(name)) {
        return Fail(DiagnosticCode::kUnknownName, absl::StrCat("symbol ", name), s.names.empty() ? "none" : absl::StrJoin(s.names, ", "), "");
      }
    }
  }
  for (size_t v = 0; v < s.guards.size(); ++v) {
    bool holds = true;
    for (size_t i = 0; holds && i < s.values.size(); ++i) holds = s.guards[v][i].low <= s.values[i] && s.values[i] <= s.guards[v][i].high;
    if (holds) return static_cast<int>(v);
  }
  std::string sizes;
  for (size_t i = 0; i < s.names.size(); ++i) absl::StrAppend(&sizes, i == 0 ? "" : ", ", s.names[i], " = ", s.values[i]);
  return Fail(DiagnosticCode::kSizeConflict, "", "a guard of some variant", sizes);
}

Status Executable::Compile(int variant) {
  State_& s = *s_;
  if (s.plans[variant] != nullptr) return absl::OkStatus();
  for (const Port& port : s.signature.params) {
    if (!s.memory.params.contains(port.name)) return Fail(DiagnosticCode::kMissing, absl::StrCat("parameter ", port.name), "", "");
  }
  const int64_t start = SteadyNs();
  const KernelCache::Report before = s.options.cache->report();
  QUERN_ASSIGN(lir::Plan plan, s.variants[variant].plan());
  std::vector<std::string> symbols = lir::KernelSymbols(plan, s.variants[variant].guard);
  const int64_t planned = SteadyNs();
  QUERN_ASSIGN(s.plans[variant], BoundPlan::Create(std::move(plan), s.names, std::move(symbols), *s.options.cache, s.memory, *s.options.pool,
                                                     {s.options.stepping.observer, variant, s.options.stepping.substitute}));
  const int64_t compiled = SteadyNs();
  ++s.report.variants;
  s.report.plan_ns += planned - start;
  s.report.compile_ns += compiled - planned;
  s.compiled.push_back({variant, start, planned, compiled});
  // Every worker has the scratch that the hungriest kernel so far asks.
  const int64_t bytes = std::max(s.plans[variant]->scratch_bytes(), int64_t{64});
  if (s.scratch.empty() || s.scratch[0].size() < bytes) {
    s.scratch.clear();
    s.scratch_pointers.clear();
    for (int w = 0; w < s.options.pool->threads(); ++w) {
      QUERN_ASSIGN(Memory memory, Memory::Allocate(bytes));
      s.scratch_pointers.push_back(memory.data());
      s.scratch.push_back(std::move(memory));
    }
  }
  if (s.options.log) {
    const KernelCache::Report after = s.options.cache->report();
    s.options.log(absl::StrFormat("compiled the variant for %s: %u launches, %d new kernels, %.1f ms planning, %.1f ms compiling",
                                  GuardText(s.variants[variant].guard), s.plans[variant]->plan().launches.size(), after.compiled - before.compiled,
                                  (planned - start) * 1e-6, (compiled - planned) * 1e-6));
  }
  return absl::OkStatus();
}

Status Executable::Prepare(const Binding& symbols) {
  const Exclusive exclusive(s_->busy);
  if (!exclusive.held()) return Fail(DiagnosticCode::kBusy, "", "", "");
  QUERN_ASSIGN(const int variant, Choose(symbols));
  return Compile(variant);
}

Status Executable::CheckLength(const char* kind, const Port& port, const void* data, int64_t bytes, int64_t expected) const {
  if (bytes == expected && (data != nullptr || bytes == 0)) return absl::OkStatus();
  if (bytes == expected) return Fail(DiagnosticCode::kMissing, absl::StrCat(kind, port.name), "", "");
  return Fail(DiagnosticCode::kShapeMismatch, absl::StrCat(kind, port.name),
              absl::StrCat(expected, " bytes of ", port.type.ToString()), absl::StrCat(bytes, " bytes"));
}

Status Executable::CheckLengths(std::span<const ConstBytes> inputs, std::span<const MutableBytes> outputs) {
  State_& s = *s_;
  if (s.sized != s.values || s.input_bytes.size() != s.input_sizes.size() || s.output_bytes.size() != s.output_sizes.size()) {
    s.input_bytes.clear();
    s.output_bytes.clear();
    for (const Polynomial& size : s.input_sizes) s.input_bytes.push_back(size.Evaluate(s.values));
    for (const Polynomial& size : s.output_sizes) s.output_bytes.push_back(size.Evaluate(s.values));
    s.sized = s.values;
  }
  if (inputs.size() != s.input_bytes.size()) {
    return Fail(DiagnosticCode::kMissing, absl::StrFormat("one of the %u inputs (%s)", s.input_bytes.size(), Names(s.signature.inputs)), "", "");
  }
  if (outputs.size() != s.output_bytes.size()) {
    return Fail(DiagnosticCode::kMissing, absl::StrFormat("one of the %u outputs", s.output_bytes.size()), "", "");
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    QUERN_RETURN_IF_ERROR(CheckLength("input ", s.signature.inputs[i], inputs[i].data, inputs[i].bytes, s.input_bytes[i]));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    QUERN_RETURN_IF_ERROR(CheckLength("output ", s.signature.outputs[i], outputs[i].data, outputs[i].bytes, s.output_bytes[i]));
  }
  return absl::OkStatus();
}

Status Executable::Run(std::span<const ConstBytes> inputs, std::span<const MutableBytes> outputs, const Binding& symbols) {
  State_& s = *s_;
  const Exclusive exclusive(s.busy);
  if (!exclusive.held()) return Fail(DiagnosticCode::kBusy, "", "", "");
  QUERN_ASSIGN(const int variant, Choose(symbols));
  QUERN_RETURN_IF_ERROR(CheckLengths(inputs, outputs));
  QUERN_RETURN_IF_ERROR(Compile(variant));
  const int64_t start = SteadyNs();
  BoundPlan& plan = *s.plans[variant];
  QUERN_RETURN_IF_ERROR(plan.Bind(s.values, s.memory));
  for (size_t i = 0; i < inputs.size(); ++i) plan.SetInput(s.signature.inputs[i].name, inputs[i].data);
  for (size_t i = 0; i < outputs.size(); ++i) plan.SetOutput(s.signature.outputs[i].output, outputs[i].data);
  RunRecord* record = nullptr;
  if (s.log != nullptr) {
    LoggedRun& run = s.log->Add(variant, s.values, plan.dispatches().size());
    run.start_ns = start;
    run.bind_ns = SteadyNs() - start;
    record = &run.record;
  }
  const int64_t bound = SteadyNs();
  if (s.options.stepping.observer == nullptr) s.options.pool->Run(plan.dispatches(), s.scratch_pointers, record);
  else QUERN_RETURN_IF_ERROR(plan.RunStepwise(*s.options.pool, s.scratch_pointers));
  s.last = &plan;
  s.report.bind_ns = bound - start;
  s.report.run_ns = SteadyNs() - bound;
  s.report.arena_bytes = s.memory.arena.size();
  return absl::OkStatus();
}

StatusOr<std::span<uint8_t>> Executable::State(std::string_view name) {
  const auto state = s_->memory.states.find(name);
  if (state != s_->memory.states.end()) return state->second.bytes();
  return Fail(DiagnosticCode::kUnknownName, absl::StrCat("state ", std::string(name)), Names(s_->signature.states), "");
}

void Executable::ResetState() {
  for (auto& [name, memory] : s_->memory.states) {
    if (memory.size() > 0) std::memset(memory.data(), 0, static_cast<size_t>(memory.size()));
  }
}

}  // namespace quern
