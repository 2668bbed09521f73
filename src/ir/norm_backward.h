// The gradients of LayerNorm and RmsNorm, which differ in whether the mean is taken off.
//
//   input   r (g dy - mean(g dy) - n mean(g dy n)), n what is normal and r = 1 / sqrt(variance + eps); without the mean
//           r (g dy - n mean(g dy n)), which is r g dy - r^3 x mean(g dy x)
//   gamma   the sum of dy n over the rows
#pragma once

#include "ir/op.h"

namespace quern::ir {

const OpDef* NormBackwardInput(const char* name, const char* doc, bool centred);
const OpDef* NormBackwardGamma(const char* name, const char* doc, bool centred);

}  // namespace quern::ir
