// What the public options ask of the runtime: an engine for the cpu level, its kernel cache, and threads.
#pragma once

#include "base/status.h"
#include "quern/quern.h"
#include "runtime/executable.h"

namespace quern::compiler {

// Each call makes a pool and a cache of their own. Errors: an unknown cpu level, or one this machine lacks; a number of
// threads outside 0..256.
StatusOr<ExecutableOptions> ExecutableOptionsOf(const Options& options);

}  // namespace quern::compiler
