// The gradients of GroupNorm, of x [N, C, s..] in groups of channels: with n what is normal, g = gamma dy by channel
// and r = 1 / sqrt(variance + eps)
//
//   input   r (g - mean(g) - n mean(g n)), means over the group
//   gamma   the sum of dy n over all but the channels
//   beta    the sum of dy over all but the channels
#pragma once

#include "ir/op.h"

namespace quern::ir {

enum class GroupNormGradient { kInput, kGamma, kBeta };

const OpDef* GroupNormBackward(const char* name, const char* doc, GroupNormGradient of);

}  // namespace quern::ir
