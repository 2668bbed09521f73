// Models with other weights than they came with, and sizes to run their plans at: what tests of all kernels of models
// draw on.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "base/extent.h"
#include "base/status.h"
#include "hir/module.h"
#include "lir/plan.h"

namespace quern {

// The module with every matrix of weights in another format.
StatusOr<hir::Module> WithWeights(const hir::Module& module, DType format);

// Symbols that the plan's ranges and requirements allow, each at most 17 above its least value: interpreters are slow.
StatusOr<Binding> SizesFor(const lir::Plan& plan, uint64_t seed);

}  // namespace quern
