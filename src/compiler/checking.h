// What the public options ask of checks: a checker on the executable, whose variants hand it their graphs.
#pragma once

#include <functional>
#include <memory>

#include "check/checker.h"
#include "compiler/pipeline.h"
#include "quern/quern.h"
#include "runtime/executable.h"

namespace quern::compiler {

// Null when options.check is empty; else a checker that observes the runs of what is made with `executable`. Error: an
// unknown check.
StatusOr<std::shared_ptr<check::Checker>> AttachChecker(const Options& options, const PipelineOptions& pipeline,
                                                        ExecutableOptions& executable);

// Plans the variant of `graph` for `guard` when it is called, and tells the checker, which may be null. `graph`
// outlives it.
Variant PlannedVariantOf(const ir::Graph* graph, const SymbolRanges& guard, const PipelineOptions& pipeline,
                         std::shared_ptr<check::Checker> checker, int index);

}  // namespace quern::compiler
