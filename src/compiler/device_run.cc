#include "compiler/device_run.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "compiler/device_program.h"
#include "compiler/device_targets.h"
#include "compiler/model.h"
#include "compiler/runtime_options.h"
#include "device/cuda/cuda_device.h"
#include "device/emulated/emulated_device.h"
#include "device/metal/metal_device.h"

namespace quern::compiler {
namespace {

// What is said of kernels of this machine's processor has no meaning elsewhere.
Status CheckOptions(const Options& options) {
  const std::pair<bool, const char*> wanted[] = {
      {!options.check.empty(), "checks are made"},
      {options.cache_verify, "the cache is verified"},
      {options.perf_map, "a map for perf is written"},
      {!options.debug_kernels.empty(), "files for debuggers are written"},
      {options.specialise, "tiles are inlined"},
  };
  for (const auto& [given, what] : wanted) {
    if (given)
      return absl::InvalidArgumentError(absl::StrFormat("%s on device cpu only, not on %s", what, options.device));
  }
  return absl::OkStatus();
}

constexpr std::string_view kCudaTarget = "nvptx64";

// "sm_90" -> 90, "sm_90a" -> 90 and `exact`: it runs on nothing else.
int CapabilityOf(std::string_view cpu, bool& exact) {
  int capability = 0;
  const auto [stop, error] =
      std::from_chars(cpu.data() + std::min<size_t>(3, cpu.size()), cpu.data() + cpu.size(), capability);
  exact = error == std::errc() && stop != cpu.data() + cpu.size();
  return error == std::errc() ? capability : 0;
}

// The greatest row that the device runs, or the one that is asked for.
StatusOr<const codegen::DeviceTarget*> ChooseRow(const std::string& cpu, int capability) {
  QUERN_ASSIGN(const codegen::DeviceTarget* chosen, ResolveDeviceTarget(kCudaTarget, cpu));
  const auto runs = [&](const codegen::DeviceTarget& row) {
    bool exact = false;
    const int needed = CapabilityOf(row.cpu, exact);
    return exact ? needed == capability : needed <= capability;
  };
  if (cpu != "native") {
    if (runs(*chosen)) return chosen;
    return absl::InvalidArgumentError(
        absl::StrFormat("the device is of level sm_%d and does not run %s", capability, cpu));
  }
  for (const codegen::DeviceTarget* row : DeviceTargets()) {
    bool exact = false, chosen_exact = false;
    if (row->name != kCudaTarget || !runs(*row)) continue;
    if (CapabilityOf(row->cpu, exact) >= CapabilityOf(chosen->cpu, chosen_exact)) chosen = row;
  }
  return chosen;
}

}  // namespace

bool OnDevice(const Options& options) { return !options.device.empty() && options.device != "cpu"; }

StatusOr<OpenedDevice> OpenDevice(const Options& options) {
  OpenedDevice opened;
  Options scheduled = options;
  if (options.device == "emulated") {
    QUERN_RETURN_IF_ERROR(CheckOptions(options));
    opened.target = options.cpu == "native" ? DeviceTargets().front() : FindDeviceCpu(options.cpu);
    if (opened.target == nullptr)
      return absl::InvalidArgumentError(
          absl::StrFormat("device emulated has no cpu \"%s\"; it takes those of %s", options.cpu, DeviceTargetNames()));
    QUERN_ASSIGN(opened.threads, ThreadsOf(options));
    opened.device = device::emulated::MakeDevice(opened.threads);
  } else if (options.device == "cuda") {
    QUERN_RETURN_IF_ERROR(CheckOptions(options));
    QUERN_ASSIGN(device::cuda::CudaDevice made, device::cuda::OpenDevice({}));
    QUERN_ASSIGN(opened.target, ChooseRow(options.cpu, made.capability));
    opened.device = std::move(made.device);
    opened.reads_text = true;
  } else if (options.device == "metal") {
    QUERN_RETURN_IF_ERROR(CheckOptions(options));
    QUERN_ASSIGN(opened.device, device::metal::OpenDevice());
    QUERN_ASSIGN(opened.target, ResolveDeviceTarget("metal", options.cpu));
    opened.reads_text = true;
  } else {
    return absl::InvalidArgumentError(
        absl::StrFormat("there is no device \"%s\"; there are cpu, cuda, emulated and metal", options.device));
  }
  scheduled.cpu = opened.target->cpu;
  if (options.cancel != nullptr) opened.cancel = &options.cancel->flag();
  QUERN_ASSIGN(opened.pipeline, PipelineOptionsOf(scheduled));
  return opened;
}

StatusOr<std::unique_ptr<device::Executor>> MakeExecutor(const ir::Graph* graph, std::span<const SymbolRanges> guards,
                                                         const OpenedDevice& opened,
                                                         const std::shared_ptr<DeviceCounts>& counts) {
  std::vector<device::LazyVariant> variants;
  for (const SymbolRanges& guard : guards) {
    const auto make = [graph, guard, pipeline = opened.pipeline, target = opened.reads_text ? opened.target : nullptr,
                       counts]() -> StatusOr<std::shared_ptr<const device::LoadableProgram>> {
      QUERN_ASSIGN(device::LoadableProgram program, PlanProgram(*graph, {&guard, 1}, pipeline));
      if (target != nullptr) QUERN_RETURN_IF_ERROR(AddText(program, *target));
      counts->kernels += static_cast<int>(program.program.kernels.size());
      return std::make_shared<const device::LoadableProgram>(std::move(program));
    };
    variants.push_back({guard, make, 0});
  }
  return device::Executor::Create(opened.device, SignatureOf(*graph), std::move(variants), opened.cancel);
}

}  // namespace quern::compiler
