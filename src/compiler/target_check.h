// Whether a target takes a graph: it is planned and its kernels are written, but nothing is compiled further.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/pipeline.h"
#include "ir/graph.h"
#include "quern/quern.h"

namespace quern::compiler {

// "cpu", "aot", "c", then the devices' ("ptx", "metal").
std::vector<std::string> TargetNames();
// What the pipeline is told for a target. Errors: an unknown target or policy.
StatusOr<PipelineOptions> PipelineOf(std::string_view target, const Options& options);
// Writes the kernels of a plan in the target's text. Errors: a kernel that has no form there.
Status WriteKernels(const lir::Plan& plan, std::string_view target);
// All of that for every size of the graph. Errors: why it is refused.
Status Takes(const ir::Graph& graph, std::string_view target, const Options& options);

}  // namespace quern::compiler
