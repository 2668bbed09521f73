// The JIT: kernels compiled for this machine and linked into this process.
//
//   QUERN_ASSIGN(auto engine, jit::Engine::Create({}));
//   QUERN_ASSIGN(jit::Module module, engine->Compile(kernels));
//   module.kernel(0)(&args, scratch, 0, chunks);
// Compiles on several threads, each with its own LLVM context; Compile itself may be called from any thread. A Module
// owns its code: when it goes, the memory is given back. No LLVM type appears here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/compile_key.h"
#include "codegen/cpu/object.h"
#include "codegen/cpu/target.h"
#include "kir/kir.h"
#include "quern/abi.h"

namespace quern::jit {

struct EngineOptions {
  std::string cpu = "native";  // a level's name or alias (codegen/cpu/target.h)
  int threads = 2;             // for compiling
  cpu::EmitOptions emit = {};
  bool perf_map = false;  // append to /tmp/perf-PID.map, which `perf report` reads
  // A folder, made when it is not there, for all that debuggers and profilers want: SYMBOL.kir, the printed text of
  // each kernel, which line tables refer to; code is announced to GDB; and jit-PID.dump (jit/jitdump.h). Objects then
  // hold the folder's path: they are of no use elsewhere. Empty: none of that.
  std::string debug_folder = {};
};

// Wall time in nanoseconds; the parts are summed over the compile threads, `wall` is what the caller waited.
struct CompileReport {
  cpu::CompileTimes times;
  int64_t jitlink = 0;
  int64_t wall = 0;
  int64_t code_bytes = 0;  // of object files
};

// Where the time of one kernel's code went, on the steady clock, in nanoseconds.
struct ObjectReport {
  std::string symbol;
  bool loaded = false;  // made earlier: it was only linked
  int thread = 0;       // that compiled it, from 0
  int64_t start = 0;    // emit, link, optimise and codegen follow one another from here
  cpu::CompileTimes times;
  int64_t jitlink_start = 0, jitlink = 0;
  int64_t bytes = 0;  // of the object file
  cpu::EmitStats stats;
};

// An object file and the symbol of its kernel.
struct SavedObject {
  std::string_view bytes;
  std::string symbol;
};

class Engine;

// Compiled kernels, in the order they were given, each an object of its own. Keeps its Engine alive.
class Module {
 public:
  Module(Module&&) noexcept;
  Module& operator=(Module&&) noexcept;
  ~Module();

  size_t size() const;
  quern_kernel* kernel(size_t index) const;
  const cpu::EmitStats& stats(size_t index) const;
  const CompileReport& report() const;
  const ObjectReport& object_report(size_t index) const;
  // The kernel's object file, for a cache; and its symbol there.
  const std::string& object(size_t index) const;
  const std::string& symbol(size_t index) const;
  // Filled when asked for by EmitOptions.
  const std::string& ir_after(size_t index) const;
  const std::string& assembly(size_t index) const;

 private:
  friend class Engine;
  struct State;
  explicit Module(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class Engine {
 public:
  // Errors: an unknown level, or one that this machine cannot run (names the missing features).
  static StatusOr<std::shared_ptr<Engine>> Create(const EngineOptions& options);
  ~Engine();

  const cpu::Target& target() const;
  // Kernels that have passed kir::Verify; equal ones are the caller's to merge. `symbols`: what their functions are
  // called; without them, as the kernels are.
  StatusOr<Module> Compile(std::span<const kir::Kernel> kernels, std::span<const std::string> symbols = {});
  // Everything that the object of one kernel under this symbol depends on.
  cache::CompileKey KeyOf(const kir::Kernel& kernel, const std::string& symbol) const;
  // Links objects made earlier by Compile with equal keys; the kernels in their order. Bytes that are not a well-formed
  // object of this machine are an error, but code is trusted: check a stored object's checksum first.
  StatusOr<Module> Load(std::span<const SavedObject> objects);
  // Bytes of the object files behind live modules.
  int64_t live_bytes() const;

 private:
  friend class Module;
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  Status Link(Module::State& module);
  void WritePerfMap(const Module::State& module);
  void WriteJitDump(const Module::State& module);
  static Status StartDebugging(State& state);
  std::unique_ptr<State> state_;
  std::weak_ptr<Engine> self_;
};

}  // namespace quern::jit
