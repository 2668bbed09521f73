// What programs, sessions and encoders have in common: a module, compiled for this machine's processor.
#pragma once

#include <memory>
#include <vector>

#include "check/checker.h"
#include "compiler/pipeline.h"
#include "compiler/prepared_graph.h"
#include "hir/module.h"
#include "quern/quern.h"
#include "runtime/executable.h"

namespace quern::compiler {

struct MadeExecutable {
  std::shared_ptr<PreparedGraph> graph;     // what variants are planned from
  std::shared_ptr<check::Checker> checker;  // null: none was asked for
  std::shared_ptr<KernelCache> cache;
  std::unique_ptr<Executable> executable;
};

// Variants are those of `guards`, tried in order, that some sizes meet; each is planned when a run first needs it, or
// found in the cache. No parameter is bound. The module outlives what is made. `options` name no device, which callers
// have seen to. Errors: those of the passes and options; kSizeConflict, no guard is left.
StatusOr<MadeExecutable> MakeExecutable(const hir::Module& module, std::vector<SymbolRanges> guards,
                                        const Options& options, const PipelineOptions& pipeline);

}  // namespace quern::compiler
