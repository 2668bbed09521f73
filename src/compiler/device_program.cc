#include "compiler/device_program.h"

#include "lir/signature.h"

namespace quern::compiler {

StatusOr<device::LoadableProgram> PlanProgram(const ir::Graph& graph, std::span<const SymbolRanges> guards,
                                              const PipelineOptions& pipeline) {
  // Before kernels are asked for, which what finds sizes may not have either.
  QUERN_RETURN_IF_ERROR(ir::RefuseCounted(ir::AllCountedSizes(graph)));
  QUERN_ASSIGN(const std::vector<SymbolRanges> possible, PossibleGuards(graph, {guards.begin(), guards.end()}));
  std::vector<device::PlannedVariant> plans;
  for (const SymbolRanges& guard : possible) {
    QUERN_ASSIGN(PlannedVariant planned, PlanVariant(graph, guard, pipeline));
    plans.push_back({guard, std::move(planned.plan)});
  }
  QUERN_ASSIGN(device::Collected collected, device::CollectProgram(SignatureOf(graph), plans));
  device::LoadableProgram made;
  made.program = std::move(collected.program);
  made.source.kernels = std::move(collected.kernels);
  made.source.entries = device::EntriesOf(made.program);
  return made;
}

Status AddText(device::LoadableProgram& program, const codegen::DeviceTarget& target) {
  std::vector<std::string> symbols;
  for (const device::ModuleSource::Entry& entry : program.source.entries) symbols.push_back(entry.symbol);
  QUERN_ASSIGN(codegen::DeviceModule module, target.emit(program.source.kernels, symbols, target));
  program.program.target = target.name;
  program.program.cpu = target.cpu;
  QUERN_RETURN_IF_ERROR(device::AddModule(program.program, module));
  program.source.entries = device::EntriesOf(program.program);
  program.source.text = std::move(module.text);
  return absl::OkStatus();
}

}  // namespace quern::compiler
