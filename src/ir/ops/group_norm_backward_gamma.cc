// GroupNormBackwardGamma: the gradient of a GroupNorm in gamma.

#include "ir/group_norm_backward.h"

namespace quern::ir {

const OpDef& Op_group_norm_backward_gamma() {
  static const OpDef* const op =
      GroupNormBackward("GroupNormBackwardGamma", "the gradient of a GroupNorm in gamma", GroupNormGradient::kGamma);
  return *op;
}

}  // namespace quern::ir
