// What the public options ask of the runtime: an engine for the cpu level, its kernel cache, and threads.
#pragma once

#include <memory>

#include "base/status.h"
#include "cache/object_store.h"
#include "quern/quern.h"
#include "runtime/executable.h"

namespace quern::compiler {

// Each call makes a pool and a cache of their own. Errors: an unknown cpu level, or one this machine lacks; a number of
// threads outside 0..256.
StatusOr<ExecutableOptions> ExecutableOptionsOf(const Options& options);

// Threads that run kernels. Error: a number outside 0..256.
StatusOr<int> ThreadsOf(const Options& options);

// The engine that the options ask for. Errors: an unknown cpu level, or one this machine lacks; a number of threads.
StatusOr<std::shared_ptr<jit::Engine>> EngineOf(const Options& options);

// The store that the options ask for, or null. Errors: options.cache names a folder that cannot be used.
StatusOr<std::shared_ptr<cache::ObjectStore>> StoreOf(const Options& options);

}  // namespace quern::compiler
