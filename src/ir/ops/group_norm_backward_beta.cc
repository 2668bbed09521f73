// GroupNormBackwardBeta: the gradient of a GroupNorm in beta.

#include "ir/group_norm_backward.h"

namespace quern::ir {

const OpDef& Op_group_norm_backward_beta() {
  static const OpDef* const op =
      GroupNormBackward("GroupNormBackwardBeta", "the gradient of a GroupNorm in beta", GroupNormGradient::kBeta);
  return *op;
}

}  // namespace quern::ir
