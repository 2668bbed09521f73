// Expressions over symbols: their value under a binding. See kir.h for BindSymbols and GridChunks.
#pragma once

#include "base/extent.h"
#include "base/status.h"
#include "kir/kir.h"

namespace quern::kir {

// The value of an integer expression whose names are all bound: constants, names and integer operators. Errors name
// what cannot be evaluated; arithmetic wraps.
StatusOr<int64_t> EvaluateIndex(const ExprRef& expr, const Binding& binding);

// The ranges of all symbols of the kernel, derived ones computed from theirs.
SymbolRanges RangesOf(const Kernel& kernel);

}  // namespace quern::kir
