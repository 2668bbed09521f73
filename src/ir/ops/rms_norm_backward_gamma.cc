// RmsNormBackwardGamma: the gradient of an RmsNorm in gamma.

#include "ir/norm_backward.h"

namespace quern::ir {

const OpDef& Op_rms_norm_backward_gamma() {
  static const OpDef* const op =
      NormBackwardGamma("RmsNormBackwardGamma", "the gradient of an RmsNorm in gamma", /*centred=*/false);
  return *op;
}

}  // namespace quern::ir
