#include "device/executor.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/ticks.h"
#include "device/bound_variant.h"
#include "device/device_memory.h"
#include "device/recording.h"
#include "runtime/run_sizes.h"

namespace quern::device {
namespace {

// A program on the device, for as long as this lives.
class Loaded {
 public:
  static StatusOr<std::unique_ptr<Loaded>> Load(Device& device, std::shared_ptr<const LoadableProgram> program) {
    QUERN_ASSIGN(LoadedModule module, device.Load(program->source));
    std::unique_ptr<Loaded> loaded(new Loaded(device, std::move(program), std::move(module)));
    if (loaded->module_.functions.size() != loaded->program().kernels.size())
      return absl::InternalError("the module has other entries than its program");
    return loaded;
  }
  ~Loaded() { (void)device_.Unload(module_.module); }
  Loaded(const Loaded&) = delete;

  const Program& program() const { return program_->program; }
  const LoadableProgram* key() const { return program_.get(); }
  std::span<const uint64_t> functions() const { return module_.functions; }

 private:
  Loaded(Device& device, std::shared_ptr<const LoadableProgram> program, LoadedModule module)
      : device_(device), program_(std::move(program)), module_(std::move(module)) {}
  Device& device_;
  const std::shared_ptr<const LoadableProgram> program_;
  const LoadedModule module_;
};

// A variant that is ready to run.
struct Ready {
  explicit Ready(BoundVariant variant) : bound(std::move(variant)) {}

  BoundVariant bound;
  DeviceMemory once;
  std::vector<DeviceMemory> constants;  // by buffer; none for those of other homes
  std::vector<Address> bases;           // by buffer
  std::vector<int64_t> values;          // that `bound` follows, once it does
  bool follows = false;
  bool once_done = false;
  int runs = 0;
  std::map<int, Recording> recordings;  // by the first launch of what is launched together
};

}  // namespace

struct Executor::State {
  // Members go in reverse: variants before the modules, everything before the device.
  std::shared_ptr<Device> device;
  RunSizes sizes;
  std::vector<LazyVariant> variants;
  std::deque<std::unique_ptr<Loaded>> modules;
  std::map<std::string, DeviceMemory, std::less<>> params, states;
  std::vector<DeviceMemory> inputs, outputs;  // by port
  DeviceMemory arena;
  std::vector<std::unique_ptr<Ready>> ready;  // by variant; null until it is needed
  Report report;
  LastRun last;
  const std::atomic<bool>* cancel = nullptr;
  std::atomic_flag busy;

  // Copies, and returns when the host's memory is no longer in use, whatever happens.
  Status CopyIn(const DeviceMemory& to, std::span<const uint8_t> from) {
    if (from.empty()) return absl::OkStatus();
    return Finish(device->CopyIn(to.address(), from.data(), static_cast<int64_t>(from.size())));
  }
  Status CopyOut(std::span<uint8_t> to, const DeviceMemory& from) {
    if (to.empty()) return absl::OkStatus();
    return Finish(device->CopyOut(to.data(), from.address(), static_cast<int64_t>(to.size())));
  }
  Status Finish(Status status) {
    status.Update(device->Synchronise());
    return status;
  }
  StatusOr<Loaded*> Module(const std::shared_ptr<const LoadableProgram>& program);
  Status Make(int variant);
  Status Follow(Ready& ready);
  Status RunOnce(Ready& ready);
  Status Place(Ready& ready);
  struct Span {
    Address address = 0;
    int64_t bytes = 0;
  };
  Span HomeOf(const Ready& ready, int buffer) const;
  void Forget();
  // Launches [first, end) of the variant, as one recording where the device keeps some.
  Status Launch(Ready& ready, int first, int end);
  Status LaunchAll(Ready& ready);
  Status Poll() const {
    return cancel != nullptr && cancel->load(std::memory_order_relaxed) ? Cancelled() : absl::OkStatus();
  }
};

Executor::Executor(std::unique_ptr<State> state) : s_(std::move(state)) {}
Executor::~Executor() = default;

const Signature& Executor::signature() const { return s_->sizes.signature(); }
const Executor::Report& Executor::report() const { return s_->report; }
const Executor::LastRun& Executor::last() const { return s_->last; }

std::vector<ModuleSource::Entry> EntriesOf(const Program& program) {
  std::vector<ModuleSource::Entry> entries;
  for (const Kernel& kernel : program.kernels) entries.push_back({kernel.symbol, kernel.threads});
  return entries;
}

std::vector<LazyVariant> VariantsOf(const std::shared_ptr<const LoadableProgram>& program) {
  std::vector<LazyVariant> variants;
  for (size_t v = 0; v < program->program.variants.size(); ++v) {
    const auto make = [program]() -> StatusOr<std::shared_ptr<const LoadableProgram>> { return program; };
    variants.push_back({program->program.variants[v].guard, make, static_cast<int>(v)});
  }
  return variants;
}

StatusOr<std::unique_ptr<Executor>> Executor::Create(std::shared_ptr<Device> device, Signature signature,
                                                     std::vector<LazyVariant> variants,
                                                     const std::atomic<bool>* cancel) {
  std::vector<SymbolRanges> guards;
  for (const LazyVariant& variant : variants) guards.push_back(variant.guard);
  auto state = std::make_unique<State>();
  State& s = *state;
  s.device = std::move(device);
  s.cancel = cancel;
  QUERN_ASSIGN(s.sizes, RunSizes::Create(std::move(signature), guards));
  s.variants = std::move(variants);
  s.ready.resize(s.variants.size());
  s.inputs.resize(s.sizes.signature().inputs.size());
  s.outputs.resize(s.sizes.signature().outputs.size());
  for (const Port& port : s.sizes.signature().states) {
    const std::optional<int64_t> most = BytesOf(port, false).UpperBound(s.sizes.signature().symbols);
    if (!most || *most < 0)
      return absl::InvalidArgumentError(
          absl::StrFormat("state %s has no largest size: %s", port.name, port.type.ToString()));
    QUERN_ASSIGN(DeviceMemory memory, DeviceMemory::Allocate(*s.device, *most));
    if (*most > 0) QUERN_RETURN_IF_ERROR(s.device->Fill(memory.address(), 0, *most));
    s.states[port.name] = std::move(memory);
  }
  return std::unique_ptr<Executor>(new Executor(std::move(state)));
}

Status Executor::BindParam(std::string_view name, std::span<const uint8_t> bytes) {
  State& s = *s_;
  const Exclusive exclusive(s.busy);
  if (!exclusive.held()) return s.sizes.Fail(DiagnosticCode::kBusy, "", "", "");
  QUERN_ASSIGN(const Port* const port, s.sizes.CheckParam(name, static_cast<int64_t>(bytes.size())));
  for (const std::unique_ptr<Ready>& ready : s.ready) {
    if (ready != nullptr) ready->once_done = false;
  }
  const auto copy = [&]() -> Status {
    DeviceMemory& memory = s.params[port->name];
    bool moved = false;
    QUERN_RETURN_IF_ERROR(memory.Reserve(*s.device, static_cast<int64_t>(bytes.size()), moved));
    if (moved) s.Forget();
    return s.CopyIn(memory, bytes);
  };
  const Status status = copy();
  if (!status.ok()) s.params.erase(port->name);  // what it holds is not known
  return status;
}

StatusOr<Loaded*> Executor::State::Module(const std::shared_ptr<const LoadableProgram>& program) {
  for (const std::unique_ptr<Loaded>& loaded : modules) {
    if (loaded->key() == program.get()) return loaded.get();
  }
  QUERN_ASSIGN(std::unique_ptr<Loaded> loaded, Loaded::Load(*device, program));
  modules.push_back(std::move(loaded));
  return modules.back().get();
}

Status Executor::State::Make(int variant) {
  for (const Port& port : sizes.signature().params) {
    if (!params.contains(port.name))
      return sizes.Fail(DiagnosticCode::kMissing, absl::StrCat("parameter ", port.name), "", "");
  }
  if (ready[variant] != nullptr) return absl::OkStatus();
  const int64_t start = SteadyNs();
  QUERN_ASSIGN(const std::shared_ptr<const LoadableProgram> program, variants[variant].make());
  const int64_t planned = SteadyNs();
  QUERN_ASSIGN(Loaded* const loaded, Module(program));
  QUERN_ASSIGN(BoundVariant bound,
               BoundVariant::Create(loaded->program(), variants[variant].index, sizes.names(), loaded->functions()));
  auto made = std::make_unique<Ready>(std::move(bound));
  const Variant& plan = made->bound.variant();
  QUERN_ASSIGN(made->once, DeviceMemory::Allocate(*device, plan.once_bytes.constant()));
  made->constants.resize(plan.buffers.size());
  made->bases.resize(plan.buffers.size());
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    if (plan.buffers[b].home != lir::Home::kConstant || plan.buffers[b].data->empty()) continue;
    const std::vector<uint8_t>& data = *plan.buffers[b].data;
    QUERN_ASSIGN(made->constants[b], DeviceMemory::Allocate(*device, static_cast<int64_t>(data.size())));
    QUERN_RETURN_IF_ERROR(CopyIn(made->constants[b], data));
  }
  ready[variant] = std::move(made);
  ++report.variants;
  report.plan_ns += planned - start;
  report.compile_ns += SteadyNs() - planned;
  return absl::OkStatus();
}

// Where the buffer's home has it, and how many bytes there are from there on.
Executor::State::Span Executor::State::HomeOf(const Ready& variant, int b) const {
  const lir::Buffer& buffer = variant.bound.variant().buffers[b];
  const auto within = [&](const DeviceMemory& memory) {
    return Span{memory.address() + static_cast<uint64_t>(variant.bound.offset(b)),
                memory.bytes() - variant.bound.offset(b)};
  };
  const auto whole = [](const DeviceMemory& memory) { return Span{memory.address(), memory.bytes()}; };
  const auto port = [&](const std::vector<Port>& ports, const std::vector<DeviceMemory>& memory, auto same) {
    for (size_t p = 0; p < ports.size(); ++p) {
      if (same(ports[p])) return whole(memory[p]);
    }
    return Span{};
  };
  switch (buffer.home) {
    case lir::Home::kArena: return within(arena);
    case lir::Home::kOnce: return within(variant.once);
    case lir::Home::kConstant: return whole(variant.constants[b]);
    case lir::Home::kParam: return whole(params.find(buffer.name)->second);
    case lir::Home::kState: return whole(states.find(buffer.name)->second);
    case lir::Home::kLoop: break;
    case lir::Home::kInput:
      return port(sizes.signature().inputs, inputs, [&](const Port& p) { return p.name == buffer.name; });
    case lir::Home::kOutput:
      return port(sizes.signature().outputs, outputs, [&](const Port& p) { return p.output == buffer.index; });
  }
  return {};
}

Status Executor::State::Place(Ready& variant) {
  const std::vector<lir::Buffer>& buffers = variant.bound.variant().buffers;
  for (int b = 0; b < static_cast<int>(buffers.size()); ++b) {
    if (!variant.bound.used(b) || buffers[b].home == lir::Home::kLoop) continue;
    const Span home = HomeOf(variant, b);
    if (variant.bound.bytes(b) > home.bytes) {
      return absl::InvalidArgumentError(absl::StrFormat("%s: buffer %d (%s) has %d bytes, its memory %d",
                                                        sizes.signature().name, b, buffers[b].name,
                                                        variant.bound.bytes(b), home.bytes));
    }
    variant.bases[b] = home.address;
  }
  variant.bound.Place(variant.bases);
  return absl::OkStatus();
}

// Memory that launches point to has moved.
void Executor::State::Forget() {
  for (const std::unique_ptr<Ready>& variant : ready) {
    if (variant != nullptr) variant->follows = false;
  }
}

Status Executor::State::Follow(Ready& variant) {
  if (variant.follows && variant.values == sizes.values()) return absl::OkStatus();
  variant.follows = false;
  QUERN_RETURN_IF_ERROR(variant.bound.Bind(sizes.values()));
  bool moved = false;
  QUERN_RETURN_IF_ERROR(arena.Reserve(*device, variant.bound.arena_bytes(), moved));
  if (moved) Forget();
  QUERN_RETURN_IF_ERROR(Place(variant));
  variant.values = sizes.values();
  variant.follows = true;
  return absl::OkStatus();
}

Status Executor::State::RunOnce(Ready& variant) {
  if (variant.once_done) return absl::OkStatus();
  for (const LaunchCall& call : variant.bound.once()) QUERN_RETURN_IF_ERROR(device->Launch(call));
  variant.once_done = true;
  return absl::OkStatus();
}

Status Executor::State::Launch(Ready& variant, int first, int end) {
  const std::span<const LaunchCall> calls = variant.bound.launches(first, end);
  last.launches += static_cast<int>(calls.size());
  if (!device->can_record() || variant.runs == 1 || calls.empty()) {
    for (const LaunchCall& call : calls) {
      QUERN_RETURN_IF_ERROR(Poll());
      QUERN_RETURN_IF_ERROR(device->Launch(call));
    }
    return absl::OkStatus();
  }
  auto recording = variant.recordings.find(first);
  if (recording != variant.recordings.end() && !recording->second.Fits(calls)) {
    variant.recordings.erase(recording);
    recording = variant.recordings.end();
  }
  if (recording == variant.recordings.end()) {
    QUERN_ASSIGN(Recording made, Recording::Make(*device, calls));
    recording = variant.recordings.emplace(first, std::move(made)).first;
  } else {
    QUERN_ASSIGN(const int updates, recording->second.Update(calls));
    last.updates += updates;
  }
  last.replayed = true;
  return recording->second.Replay();
}

namespace {

// A device, and the memory of a variant on it.
class DeviceHost : public StepHost {
 public:
  DeviceHost(Device& device, Ready& variant, std::function<Status(int, int)> launch, std::function<Status()> poll)
      : device_(device), variant_(variant), launch_(std::move(launch)), poll_(std::move(poll)) {}

  Status Launch(int first, int end) override { return launch_(first, end); }
  Status Poll() override { return poll_(); }
  uint64_t Base(int buffer) const override { return variant_.bases[buffer]; }
  void Rebase(int buffer, uint64_t base) override {
    variant_.bases[buffer] = base;
    variant_.bound.Rebase(buffer, base);
  }
  StatusOr<uint8_t> Read(uint64_t address) override {
    uint8_t byte = 0;
    Status status = device_.CopyOut(&byte, address, 1);
    status.Update(device_.Synchronise());
    QUERN_RETURN_IF_ERROR(status);
    return byte;
  }

 private:
  Device& device_;
  Ready& variant_;
  const std::function<Status(int, int)> launch_;
  const std::function<Status()> poll_;
};

}  // namespace

Status Executor::State::LaunchAll(Ready& variant) {
  last = {};
  ++variant.runs;
  DeviceHost host(
      *device, variant, [&](int first, int end) { return Launch(variant, first, end); }, [&] { return Poll(); });
  return variant.bound.steps().Run(variant.values, host);
}

Status Executor::Prepare(const Binding& symbols) {
  const Exclusive exclusive(s_->busy);
  if (!exclusive.held()) return s_->sizes.Fail(DiagnosticCode::kBusy, "", "", "");
  QUERN_ASSIGN(const int variant, s_->sizes.Choose(symbols));
  return s_->Make(variant);
}

Status Executor::Run(std::span<const ConstBytes> inputs, std::span<const MutableBytes> outputs,
                     const Binding& symbols) {
  State& s = *s_;
  const Exclusive exclusive(s.busy);
  if (!exclusive.held()) return s.sizes.Fail(DiagnosticCode::kBusy, "", "", "");
  QUERN_ASSIGN(const int index, s.sizes.Choose(symbols));
  QUERN_RETURN_IF_ERROR(s.sizes.CheckMemory(inputs, outputs));
  QUERN_RETURN_IF_ERROR(s.Make(index));
  const int64_t start = SteadyNs();
  Ready& variant = *s.ready[index];
  bool moved = false;
  for (size_t i = 0; i < inputs.size(); ++i)
    QUERN_RETURN_IF_ERROR(s.inputs[i].Reserve(*s.device, inputs[i].bytes, moved));
  for (size_t o = 0; o < outputs.size(); ++o)
    QUERN_RETURN_IF_ERROR(s.outputs[o].Reserve(*s.device, outputs[o].bytes, moved));
  if (moved) s.Forget();
  QUERN_RETURN_IF_ERROR(s.Follow(variant));
  QUERN_RETURN_IF_ERROR(s.RunOnce(variant));
  const int64_t bound = SteadyNs();
  // From here on the device may read and write the caller's memory: nothing returns before it has stopped.
  const auto run = [&]() -> Status {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].bytes > 0)
        QUERN_RETURN_IF_ERROR(s.device->CopyIn(s.inputs[i].address(), inputs[i].data, inputs[i].bytes));
    }
    QUERN_RETURN_IF_ERROR(s.LaunchAll(variant));
    for (size_t o = 0; o < outputs.size(); ++o) {
      if (outputs[o].bytes > 0)
        QUERN_RETURN_IF_ERROR(s.device->CopyOut(outputs[o].data, s.outputs[o].address(), outputs[o].bytes));
    }
    return absl::OkStatus();
  };
  const Status status = s.Finish(run());
  if (!status.ok()) {
    variant.once_done = false;
    variant.recordings.clear();
  }
  s.report.bind_ns = bound - start;
  s.report.run_ns = SteadyNs() - bound;
  s.report.arena_bytes = s.arena.bytes();
  return status;
}

StatusOr<std::vector<uint8_t>> Executor::ReadState(std::string_view name) {
  QUERN_ASSIGN(const Port* const port, s_->sizes.FindState(name));
  const DeviceMemory& memory = s_->states.find(port->name)->second;
  std::vector<uint8_t> bytes(static_cast<size_t>(memory.bytes()));
  QUERN_RETURN_IF_ERROR(s_->CopyOut(bytes, memory));
  return bytes;
}

Status Executor::WriteState(std::string_view name, std::span<const uint8_t> bytes) {
  QUERN_ASSIGN(const Port* const port, s_->sizes.FindState(name));
  const DeviceMemory& memory = s_->states.find(port->name)->second;
  if (static_cast<int64_t>(bytes.size()) != memory.bytes()) {
    return s_->sizes.Fail(DiagnosticCode::kShapeMismatch, absl::StrCat("state ", port->name),
                          absl::StrCat(memory.bytes(), " bytes"), absl::StrCat(bytes.size(), " bytes"));
  }
  return s_->CopyIn(memory, bytes);
}

}  // namespace quern::device
