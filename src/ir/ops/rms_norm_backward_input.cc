// RmsNormBackwardInput: the gradient of an RmsNorm in x.

#include "ir/norm_backward.h"

namespace quern::ir {

const OpDef& Op_rms_norm_backward_input() {
  static const OpDef* const op =
      NormBackwardInput("RmsNormBackwardInput", "the gradient of an RmsNorm in x", /*centred=*/false);
  return *op;
}

}  // namespace quern::ir
