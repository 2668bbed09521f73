// Compiles MIR graphs the whole way and runs them: what the differential tests drive.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/pipeline.h"
#include "hir/module.h"
#include "ir/interpret.h"
#include "runtime/executable.h"

namespace quern::testing {

using BytesByName = std::map<std::string, std::vector<uint8_t>, std::less<>>;

// Everything of one instruction-set level that graphs share.
struct LevelRunner {
  const cpu::Target* target;
  std::shared_ptr<KernelCache> cache;

  static StatusOr<LevelRunner> Create(const cpu::Target& target) {
    jit::EngineOptions options;
    options.cpu = target.name;
    options.threads = 1;
    QUERN_ASSIGN(std::shared_ptr<jit::Engine> engine, jit::Engine::Create(options));
    return LevelRunner{&target, std::make_shared<KernelCache>(std::move(engine))};
  }
};

// A graph on its way: prepared, planned, and run by `Run` below.
struct CompiledGraph {
  ir::Graph prepared;
  SymbolRanges guard;
  lir::Plan plan;
};

inline StatusOr<CompiledGraph> PlanGraph(const ir::Graph& graph, const SymbolRanges& guard,
                                         const compiler::PipelineOptions& options) {
  QUERN_ASSIGN(const hir::Module module, hir::WrapGraph(graph));
  QUERN_ASSIGN(ir::Graph prepared, compiler::PrepareGraph(module, options));
  QUERN_ASSIGN(compiler::PlannedVariant planned, compiler::PlanVariant(prepared, guard, options));
  return CompiledGraph{std::move(prepared), guard, std::move(planned.plan)};
}

// Memory for each output of a prepared graph, as large as it may be.
inline StatusOr<std::vector<std::vector<uint8_t>>> RoomForOutputs(const ir::Graph& prepared, const Binding& given) {
  const Signature signature = SignatureOf(prepared);
  std::vector<std::vector<uint8_t>> results;
  for (const ir::Value& output : prepared.outputs) {
    const ir::TensorType type = RoomFor(signature, {"", prepared.type(output)}).type;
    QUERN_ASSIGN(const int64_t elements, type.elements().Evaluate(given));
    results.emplace_back(elements * ScalarBytes(type.dtype), uint8_t{0xCD});
  }
  return results;
}

// The part of it that a run has filled. `sizes`: those that it was given and those that it found.
inline Status CutToSizes(const ir::Graph& prepared, const Binding& sizes, std::vector<std::vector<uint8_t>>& results) {
  for (size_t o = 0; o < results.size(); ++o) {
    const ir::TensorType& type = prepared.type(prepared.outputs[o]);
    QUERN_ASSIGN(const int64_t elements, type.elements().Evaluate(sizes));
    results[o].resize(elements * ScalarBytes(type.dtype));
  }
  return absl::OkStatus();
}

// Inputs, parameters and states of `bytes` go in; the outputs come back in the graph's order, carried state among them.
// write(name, bytes) sets the first bytes of a state, read(name, bytes) gets them.
template <typename Write, typename Read>
StatusOr<std::vector<std::vector<uint8_t>>> RunOnce(Runnable& runnable, const ir::Graph& prepared,
                                                    const Binding& binding, const BytesByName& bytes,
                                                    const Write& write, const Read& read) {
  const Signature& signature = runnable.signature();
  for (const Port& port : signature.params)
    QUERN_RETURN_IF_ERROR(runnable.BindParam(port.name, bytes.find(port.name)->second));
  for (const Port& port : signature.states) QUERN_RETURN_IF_ERROR(write(port.name, bytes.find(port.name)->second));
  std::vector<ConstBytes> inputs;
  for (const Port& port : signature.inputs) {
    const std::vector<uint8_t>& from = bytes.find(port.name)->second;
    inputs.push_back({from.data(), static_cast<int64_t>(from.size())});
  }
  QUERN_ASSIGN(std::vector<std::vector<uint8_t>> results, RoomForOutputs(prepared, binding));
  std::vector<MutableBytes> outputs;
  for (const Port& port : signature.outputs)
    outputs.push_back({results[port.output].data(), static_cast<int64_t>(results[port.output].size())});
  QUERN_RETURN_IF_ERROR(runnable.Run(inputs, outputs, binding));
  for (const ir::Donation& donation : prepared.donations)
    QUERN_RETURN_IF_ERROR(read(donation.input, results[donation.output]));
  return results;
}

// The same of an executable of this machine.
inline StatusOr<std::vector<std::vector<uint8_t>>> RunOnce(Executable& executable, const ir::Graph& prepared,
                                                           const Binding& binding, const BytesByName& bytes) {
  QUERN_ASSIGN(auto results,
               RunOnce(
                   executable, prepared, binding, bytes,
                   [&](std::string_view name, const std::vector<uint8_t>& from) -> Status {
                     QUERN_ASSIGN(const std::span<uint8_t> state, executable.State(name));
                     if (from.size() > state.size())
                       return absl::InternalError(absl::StrFormat("state %s is too small", std::string(name)));
                     std::copy(from.begin(), from.end(), state.begin());
                     return absl::OkStatus();
                   },
                   [&](std::string_view name, std::vector<uint8_t>& to) -> Status {
                     QUERN_ASSIGN(const std::span<uint8_t> state, executable.State(name));
                     std::copy_n(state.begin(), to.size(), to.begin());
                     return absl::OkStatus();
                   }));
  QUERN_RETURN_IF_ERROR(CutToSizes(prepared, executable.last_sizes(), results));
  return results;
}

inline StatusOr<std::vector<std::vector<uint8_t>>> RunGraph(const CompiledGraph& compiled, const LevelRunner& level,
                                                            int threads, const Binding& binding,
                                                            const BytesByName& bytes) {
  ExecutableOptions options;
  options.cache = level.cache;
  options.pool = std::make_shared<ThreadPool>(threads);
  Variant variant{compiled.guard, [&compiled]() -> StatusOr<lir::Plan> { return compiled.plan; }};
  QUERN_ASSIGN(const std::unique_ptr<Executable> executable,
               Executable::Create(SignatureOf(compiled.prepared), {std::move(variant)}, std::move(options)));
  return RunOnce(*executable, compiled.prepared, binding, bytes);
}

}  // namespace quern::testing
