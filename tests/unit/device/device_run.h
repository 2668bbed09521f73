// A planned graph as a program on a device: what tests of targets with blocks of threads run.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "codegen/device_module.h"
#include "device/executor.h"
#include "unit/compiler/graph_runner.h"

namespace quern::testing {

// The plans' program; with a target, with the text that it emits.
inline StatusOr<std::shared_ptr<const device::LoadableProgram>> MakeLoadable(
    const Signature& signature, const std::vector<device::PlannedVariant>& plans, const codegen::DeviceTarget* target) {
  QUERN_ASSIGN(device::Collected collected, device::CollectProgram(signature, plans));
  auto program = std::make_shared<device::LoadableProgram>();
  if (target != nullptr) {
    QUERN_ASSIGN(codegen::DeviceModule module, target->emit(collected.kernels, collected.symbols(), *target));
    QUERN_RETURN_IF_ERROR(device::AddModule(collected.program, module));
    program->source.text = std::move(module.text);
  }
  program->program = std::move(collected.program);
  program->source.entries = device::EntriesOf(program->program);
  program->source.kernels = std::move(collected.kernels);
  return program;
}

// Runs the program of a graph, as RunGraph does on this machine's processor.
inline StatusOr<std::vector<std::vector<uint8_t>>> RunProgram(
    const std::shared_ptr<const device::LoadableProgram>& program, const CompiledGraph& graph,
    std::shared_ptr<device::Device> device, const Binding& binding, const BytesByName& bytes) {
  QUERN_ASSIGN(const std::unique_ptr<device::Executor> executor,
               device::Executor::Create(std::move(device), SignatureOf(graph.prepared), device::VariantsOf(program)));
  return RunOnce(
      *executor, graph.prepared, binding, bytes,
      [&](std::string_view name, const std::vector<uint8_t>& from) -> Status {
        QUERN_ASSIGN(std::vector<uint8_t> state, executor->ReadState(name));
        std::copy(from.begin(), from.end(), state.begin());
        return executor->WriteState(name, state);
      },
      [&](std::string_view name, std::vector<uint8_t>& to) -> Status {
        QUERN_ASSIGN(const std::vector<uint8_t> state, executor->ReadState(name));
        std::copy_n(state.begin(), to.size(), to.begin());
        return absl::OkStatus();
      });
}

// The same of a graph that is planned for blocks.
inline StatusOr<std::vector<std::vector<uint8_t>>> RunOnDevice(const CompiledGraph& graph,
                                                               std::shared_ptr<device::Device> device,
                                                               const codegen::DeviceTarget* target,
                                                               const Binding& binding, const BytesByName& bytes) {
  QUERN_ASSIGN(const std::shared_ptr<const device::LoadableProgram> program,
               MakeLoadable(SignatureOf(graph.prepared), {{graph.guard, graph.plan}}, target));
  return RunProgram(program, graph, std::move(device), binding, bytes);
}

}  // namespace quern::testing
