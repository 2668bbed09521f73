// What the public options ask of a device: the device, and what runs a model there.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compiler/pipeline.h"
#include "device/executor.h"
#include "ir/graph.h"
#include "quern/quern.h"

namespace quern::compiler {

// Whether the options name a device that is not this machine's processor.
bool OnDevice(const Options& options);

struct OpenedDevice {
  std::shared_ptr<device::Device> device;
  const codegen::DeviceTarget* target = nullptr;  // whose text it runs
  bool reads_text = false;                        // false: it runs the kernels as they are
  PipelineOptions pipeline;                       // for the target
  int threads = 1;                                // of this machine that kernels run on
  const std::atomic<bool>* cancel = nullptr;      // what asks runs to stop, or null
};
// Errors: an unknown device, one that is not there, a cpu that is no level of it; options that are about kernels of
// this machine's processor (checks, the cache's verification, maps for profilers, debug files, tiles inlined).
StatusOr<OpenedDevice> OpenDevice(const Options& options);

// How many kernels have been loaded, over all variants.
struct DeviceCounts {
  int kernels = 0;
};
// Variants of `graph`, which outlives it, are planned and written when a run first needs them.
StatusOr<std::unique_ptr<device::Executor>> MakeExecutor(const ir::Graph* graph, std::span<const SymbolRanges> guards,
                                                         const OpenedDevice& opened,
                                                         const std::shared_ptr<DeviceCounts>& counts);

}  // namespace quern::compiler
