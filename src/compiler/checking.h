// What the public options ask of checks: a checker on the executable, whose variants hand it their graphs.
#pragma once

#include <memory>

#include "check/checker.h"
#include "check/replay.h"
#include "compiler/pipeline.h"
#include "compiler/variants.h"
#include "quern/quern.h"

namespace quern::compiler {

// Null when options.check is empty; else a checker that observes the runs of what is made with `executable`. Error: an
// unknown check.
StatusOr<std::shared_ptr<check::Checker>> AttachChecker(const Options& options, const PipelineOptions& pipeline,
                                                        ExecutableOptions& executable);

// Hands the checker, which may be null, the graphs of variants.
VariantHook HookOf(std::shared_ptr<check::Checker> checker);

// The reproduction's graph as its settings compile it, on the way to check::Replay. `pipeline` says what fusion does,
// and whether activations stay exact.
StatusOr<check::Planned> PlanReproduction(const check::Reproduction& reproduction, const PipelineOptions& pipeline);

}  // namespace quern::compiler
