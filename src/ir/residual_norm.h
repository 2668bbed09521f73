// Norms of a sum, and the sum: what FusedResidualLN and FusedResidualRmsNorm have in common.
#pragma once

#include "ir/op.h"

namespace quern::ir {

// Norm(x + residual + bias) gamma + beta and x + residual + bias, over the last axis; `centred`: the mean is taken off.
const OpDef* ResidualNorm(const char* name, const char* doc, bool centred);

}  // namespace quern::ir
