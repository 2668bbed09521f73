#include "compiler/make_executable.h"

#include <utility>

#include "compiler/checking.h"
#include "compiler/compile_parts.h"
#include "compiler/kept_plans.h"
#include "compiler/runtime_options.h"
#include "compiler/variants.h"

namespace quern::compiler {

StatusOr<MadeExecutable> MakeExecutable(const hir::Module& module, std::vector<SymbolRanges> guards,
                                        const Options& options, const PipelineOptions& pipeline) {
  MadeExecutable made;
  QUERN_ASSIGN(ExecutableOptions executable, ExecutableOptionsOf(options));
  made.cache = executable.cache;
  QUERN_ASSIGN(made.checker, AttachChecker(options, pipeline, executable));
  made.graph = std::make_shared<PreparedGraph>(&module, pipeline);

  std::shared_ptr<const KeptPlans> kept;
  if (made.cache->store() != nullptr) {
    QUERN_ASSIGN(const ir::Graph lowered, hir::Lower(module));
    kept = KeptPlans::Of(lowered, guards, options, made.cache->engine(), made.cache->store());
  }
  std::optional<lir::SealedProgram> program = kept == nullptr ? std::nullopt : kept->FindProgram();
  if (!program) {
    QUERN_ASSIGN(const ir::Graph* const graph, made.graph->Get());
    QUERN_ASSIGN(guards, PossibleGuards(*graph, std::move(guards)));
    program = {SignatureOf(module, *graph), std::move(guards)};
    if (kept != nullptr) kept->KeepProgram(*program);
  }
  executable.plans = KeptPlans::KeeperOf(kept);
  std::vector<Variant> variants = VariantsOf(made.graph, program->guards, pipeline, HookOf(made.checker));
  QUERN_ASSIGN(made.executable,
               Executable::Create(std::move(program->signature), std::move(variants), std::move(executable)));
  return made;
}

}  // namespace quern::compiler
