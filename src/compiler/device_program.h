// From a graph to what a device runs: plans for blocks of threads, collected into a program, and the text of their
// kernels.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/device_module.h"
#include "compiler/pipeline.h"
#include "device/executor.h"
#include "ir/graph.h"

namespace quern::compiler {

// Plans `graph` for each guard and collects the plans. `pipeline` is that of a device's level. No text yet.
StatusOr<device::LoadableProgram> PlanProgram(const ir::Graph& graph, std::span<const SymbolRanges> guards,
                                              const PipelineOptions& pipeline);

// Writes the text of the program's kernels. Errors: a kernel that has no form on the target.
Status AddText(device::LoadableProgram& program, const codegen::DeviceTarget& target);

}  // namespace quern::compiler
