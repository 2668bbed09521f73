#include "jit/engine.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "base/check.h"
#include "base/threads.h"
#include "base/ticks.h"
#include "jit/identity.h"
#include "jit/jitdump.h"
#include "jit/line_table.h"
#include "jit/linker.h"
#include "simd/library.h"

namespace quern::jit {
namespace {

std::string TextPath(const std::string& folder, const std::string& symbol) { return folder + "/" + symbol + ".kir"; }

// The text that the line tables of the kernel's object count the lines of. Without it a debugger shows line numbers.
void WriteText(const std::string& folder, const std::string& symbol, const kir::Kernel& kernel) {
  std::ofstream(TextPath(folder, symbol)) << kir::Print(kernel);
}

// What the objects of an engine depend on beside the kernel.
cache::CompileKey SharedKey(const cpu::Target& target, const cpu::EmitOptions& emit) {
  const simd::Level* level = simd::FindLevel(target.name);
  cache::CompileKey key;
  key.level = target.name;
  key.features = std::string(level->target_cpu) + " " + std::string(level->target_features) + " " + target.required;
  key.options = absl::StrFormat("optimise=%d specialise=%d expand_tiles=%d debug_lines=%d %s", emit.optimise,
                                emit.specialise, emit.expand_tiles, emit.debug_lines, emit.kir_folder);
  key.primitives = simd::BitcodeHash();
  key.llvm = LlvmIdentity();
  key.build = SourcesIdentity();
  return key;
}

}  // namespace

struct Engine::State {
  EngineOptions options;
  const cpu::Target* target = nullptr;
  std::unique_ptr<Linker> linker;
  std::unique_ptr<JitDump> dump;  // with a debug folder
  cache::CompileKey key;          // of every kernel, but for the kernel and its symbol
  std::mutex mutex;
  std::vector<std::unique_ptr<cpu::ObjectCompiler>> idle;  // guarded by mutex
  std::atomic<int64_t> live_bytes{0};

  std::unique_ptr<cpu::ObjectCompiler> TakeCompiler() {
    {
      std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto compiler = std::move(idle.back());
        idle.pop_back();
        return compiler;
      }
    }
    return std::make_unique<cpu::ObjectCompiler>(*target, options.emit);
  }
  void ReturnCompiler(std::unique_ptr<cpu::ObjectCompiler> compiler) {
    std::lock_guard lock(mutex);
    idle.push_back(std::move(compiler));
  }
};

struct Module::State {
  std::shared_ptr<Engine> engine;
  Linker* linker = nullptr;
  // By kernel.
  std::vector<cpu::Object> objects;
  std::vector<std::unique_ptr<LinkedCode>> code;
  std::vector<ObjectReport> reports;  // likewise
  CompileReport report;
};

Module::Module(std::unique_ptr<State> state) : state_(std::move(state)) {}
Module::Module(Module&&) noexcept = default;
Module& Module::operator=(Module&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
Module::~Module() {
  if (state_ == nullptr) return;
  state_->engine->state_->live_bytes -= state_->report.code_bytes;
  for (std::unique_ptr<LinkedCode>& code : state_->code) state_->linker->Unload(std::move(code));
}
size_t Module::size() const { return state_->code.size(); }
quern_kernel* Module::kernel(size_t index) const {
  return reinterpret_cast<quern_kernel*>(state_->code[index]->addresses[0]);
}
const cpu::EmitStats& Module::stats(size_t index) const { return state_->objects[index].stats; }
const CompileReport& Module::report() const { return state_->report; }
const ObjectReport& Module::object_report(size_t index) const { return state_->reports[index]; }
const std::string& Module::object(size_t index) const { return state_->objects[index].bytes; }
const std::string& Module::symbol(size_t index) const { return state_->objects[index].symbol; }
const std::string& Module::ir_after(size_t index) const { return state_->objects[index].ir_after; }
const std::string& Module::assembly(size_t index) const { return state_->objects[index].assembly; }

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;
const cpu::Target& Engine::target() const { return *state_->target; }
int64_t Engine::live_bytes() const { return state_->live_bytes; }

Status Engine::StartDebugging(State& state) {
  std::error_code error;
  const std::string folder = std::filesystem::absolute(state.options.debug_folder, error).lexically_normal().string();
  std::filesystem::create_directories(folder, error);
  QUERN_ASSIGN(state.dump, JitDump::Create(folder));
  state.options.emit.debug_lines = true;
  state.options.emit.kir_folder = folder;
  return absl::OkStatus();
}

StatusOr<std::shared_ptr<Engine>> Engine::Create(const EngineOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  state->options.threads = std::max(options.threads, 1);
  QUERN_ASSIGN(state->target, cpu::ResolveTarget(options.cpu));
  // Before anything is compiled: the code generator would only abort.
  QUERN_RETURN_IF_ERROR(cpu::CheckHost(*state->target));
  if (!options.debug_folder.empty()) QUERN_RETURN_IF_ERROR(StartDebugging(*state));
  QUERN_ASSIGN(state->linker, Linker::Create(*state->target, state->dump != nullptr));
  state->key = SharedKey(*state->target, state->options.emit);
  std::shared_ptr<Engine> engine(new Engine(std::move(state)));
  engine->self_ = engine;
  return engine;
}

StatusOr<Module> Engine::Compile(std::span<const kir::Kernel> kernels, std::span<const std::string> symbols) {
  const int64_t start = SteadyNs();
  auto module = std::make_unique<Module::State>();
  module->objects.resize(kernels.size());
  module->reports.resize(kernels.size());
  std::vector<Status> statuses(kernels.size());
  std::atomic<size_t> next{0};
  const auto work = [&](int thread) {
    std::unique_ptr<cpu::ObjectCompiler> compiler = state_->TakeCompiler();
    for (size_t i = next++; i < kernels.size(); i = next++) {
      const std::string& symbol = symbols.empty() ? kernels[i].name : symbols[i];
      if (state_->dump != nullptr) WriteText(state_->options.emit.kir_folder, symbol, kernels[i]);
      module->reports[i].thread = thread;
      module->reports[i].start = SteadyNs();
      StatusOr<cpu::Object> object = compiler->Compile(kernels[i], symbol);
      if (object.ok())
        module->objects[i] = *std::move(object);
      else
        statuses[i] = object.status();
    }
    state_->ReturnCompiler(std::move(compiler));
  };
  RunOnThreads(static_cast<int>(std::min<size_t>(state_->options.threads, kernels.size())), work);
  for (const Status& status : statuses) QUERN_RETURN_IF_ERROR(status);
  for (const cpu::Object& object : module->objects) {
    module->report.times.emit += object.times.emit;
    module->report.times.link += object.times.link;
    module->report.times.optimise += object.times.optimise;
    module->report.times.codegen += object.times.codegen;
  }
  QUERN_RETURN_IF_ERROR(Link(*module));
  module->report.wall = SteadyNs() - start;
  return Module(std::move(module));
}

cache::CompileKey Engine::KeyOf(const kir::Kernel& kernel, const std::string& symbol) const {
  cache::CompileKey key = state_->key;
  key.kernel = kir::Print(kernel, {.origins = false, .normalise_names = true});
  key.symbol = symbol;
  return key;
}

StatusOr<Module> Engine::Load(std::span<const SavedObject> objects) {
  const int64_t start = SteadyNs();
  auto module = std::make_unique<Module::State>();
  for (const SavedObject& saved : objects) {
    cpu::Object& object = module->objects.emplace_back();
    object.bytes = saved.bytes;
    object.symbol = saved.symbol;
    module->reports.emplace_back().loaded = true;
  }
  QUERN_RETURN_IF_ERROR(Link(*module));
  module->report.wall = SteadyNs() - start;
  return Module(std::move(module));
}

Status Engine::Link(Module::State& module) {
  const int64_t start = SteadyNs();
  module.engine = self_.lock();
  module.linker = state_->linker.get();
  Status status;
  for (size_t i = 0; i < module.objects.size(); ++i) {
    const cpu::Object& object = module.objects[i];
    ObjectReport& report = module.reports[i];
    report.jitlink_start = SteadyNs();
    StatusOr<std::unique_ptr<LinkedCode>> code = state_->linker->Load(object.bytes, {&object.symbol, 1});
    report.jitlink = SteadyNs() - report.jitlink_start;
    report.symbol = object.symbol;
    report.times = object.times;
    report.stats = object.stats;
    report.bytes = static_cast<int64_t>(object.bytes.size());
    if (!code.ok()) {
      status = code.status();
      break;
    }
    module.code.push_back(*std::move(code));
    module.report.code_bytes += static_cast<int64_t>(object.bytes.size());
  }
  if (!status.ok()) {
    for (std::unique_ptr<LinkedCode>& code : module.code) state_->linker->Unload(std::move(code));
    return status;
  }
  state_->live_bytes += module.report.code_bytes;
  module.report.jitlink = SteadyNs() - start;
  if (state_->options.perf_map) WritePerfMap(module);
  if (state_->dump != nullptr) WriteJitDump(module);
  return absl::OkStatus();
}

void Engine::WriteJitDump(const Module::State& module) {
  for (size_t i = 0; i < module.code.size(); ++i) {
    const cpu::Object& object = module.objects[i];
    const LinkedCode& code = *module.code[i];
    std::vector<CodeLine> lines = LineTable(object.bytes, object.symbol);
    for (CodeLine& line : lines) line.address += code.addresses[0];
    state_->dump->Add(object.symbol, code.addresses[0], code.sizes[0],
                      TextPath(state_->options.emit.kir_folder, object.symbol), lines);
  }
}

void Engine::WritePerfMap(const Module::State& module) {
  std::lock_guard lock(state_->mutex);
  std::FILE* file = std::fopen(absl::StrFormat("/tmp/perf-%d.map", getpid()).c_str(), "a");
  if (file == nullptr) return;  // a convenience: without it perf shows addresses
  for (size_t i = 0; i < module.code.size(); ++i) {
    const LinkedCode& code = *module.code[i];
    std::fprintf(file, "%llx %llx quern:%s\n", static_cast<unsigned long long>(code.addresses[0]),
                 static_cast<unsigned long long>(code.sizes[0]), module.objects[i].symbol.c_str());
  }
  std::fclose(file);
}

}  // namespace quern::jit
