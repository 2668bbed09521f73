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

// Whether kernels of steps within `guard` are checked of a model with weights of this format. Floats: all. Of blocks
// one guard of a few rows, one of some and one of many, the next formats others: their decoding is in each kernel, and
// all formats together meet every guard. With QUERN_LONG_TESTS all.
bool ChecksSteps(DType format, const SymbolRanges& guard);
// The same of one of `count` ways to compile them.
bool ChecksWay(DType format, size_t way, size_t count);

}  // namespace quern
