// What SelectiveScan and SelectiveSteps, the form that kernels are made of, have in common: extents, and the recurrence
// in double.
#pragma once

#include "ir/op.h"

namespace quern::ir {

// Positions of the operands.
enum : int { kScanX, kScanDelta, kScanA, kScanB, kScanC, kScanD, kScanState };

// The types of y, [B, S, H], and of the state, f32 [B, H, n].
StatusOr<std::vector<TensorType>> InferSelectiveScan(const InferContext& context);
// The recurrence, token by token.
Status ReferenceSelectiveScan(RefContext& context);
// The same with every term positive: what roundings of the recurrence are relative to.
Status MagnitudeOfSelectiveScan(RefContext& context);

}  // namespace quern::ir
