#include "compiler/target_check.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "codegen/c/emit_c.h"
#include "compiler/device_targets.h"
#include "compiler/model.h"
#include "device/program.h"
#include "lir/kernel_symbols.h"

namespace quern::compiler {

std::vector<std::string> TargetNames() {
  std::vector<std::string> names = {"cpu", "aot", "c"};
  for (const std::string& stage : DeviceStages()) names.push_back(stage);
  return names;
}

StatusOr<PipelineOptions> PipelineOf(std::string_view target, const Options& given) {
  const std::vector<std::string> names = TargetNames();
  if (std::find(names.begin(), names.end(), target) == names.end()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("there is no target %s; there are %s", std::string(target), absl::StrJoin(names, ", ")));
  }
  Options options = given;
  if (const codegen::DeviceTarget* const device = FindDeviceStage(target)) options.cpu = device->cpu;
  return PipelineOptionsOf(options);
}

Status WriteKernels(const lir::Plan& plan, std::string_view target) {
  const codegen::DeviceTarget* const device = FindDeviceStage(target);
  if (device == nullptr && target != "c") return absl::OkStatus();
  std::vector<kir::Kernel> kernels;
  std::vector<std::string> symbols;
  const std::vector<std::string> names = device::EntryNames(lir::KernelSymbols(plan, {}));
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    if (plan.calls.contains(static_cast<int>(k))) {
      if (device == nullptr) continue;
      return absl::UnimplementedError("a C function, which no device calls");
    }
    kernels.push_back(plan.kernels[k]);
    symbols.push_back(names[k]);
  }
  if (kernels.empty()) return absl::OkStatus();
  if (device != nullptr) return device->emit(kernels, symbols, *device).status();
  std::vector<c::NamedKernel> named;
  for (size_t k = 0; k < kernels.size(); ++k) named.push_back({&kernels[k], symbols[k]});
  return c::EmitC(named).status();
}

Status Takes(const ir::Graph& graph, std::string_view target, const Options& options) {
  QUERN_ASSIGN(const PipelineOptions pipeline, PipelineOf(target, options));
  QUERN_ASSIGN(const hir::Module module, hir::WrapGraph(graph));
  QUERN_ASSIGN(const ir::Graph prepared, PrepareGraph(module, pipeline));
  QUERN_ASSIGN(const PlannedVariant variant, PlanVariant(prepared, {}, pipeline));
  return WriteKernels(variant.plan, target);
}

}  // namespace quern::compiler
