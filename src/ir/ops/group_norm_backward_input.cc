// GroupNormBackwardInput: the gradient of a GroupNorm in x.

#include "ir/group_norm_backward.h"

namespace quern::ir {

const OpDef& Op_group_norm_backward_input() {
  static const OpDef* const op =
      GroupNormBackward("GroupNormBackwardInput", "the gradient of a GroupNorm in x", GroupNormGradient::kInput);
  return *op;
}

}  // namespace quern::ir
