// The text of one stage of a module's way to machine code.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/pipeline.h"
#include "hir/module.h"
#include "quern/quern.h"

namespace quern::compiler {

// The variant that is shown is the first of `guards` that takes dump.tokens for the first symbol it names (a guard that
// names none takes all). Errors: an unknown stage, pass or cpu level; options that exclude each other; those of the
// passes.
StatusOr<std::string> DumpModule(const hir::Module& module, const std::vector<SymbolRanges>& guards,
                                 const Options& options, const DumpOptions& dump);

}  // namespace quern::compiler
