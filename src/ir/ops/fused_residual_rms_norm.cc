// FusedResidualRmsNorm: RmsNorm(x + residual), and the sum itself as a second result.

#include "ir/residual_norm.h"

namespace quern::ir {

const OpDef& Op_fused_residual_rms_norm() {
  static const OpDef* const op =
      ResidualNorm("FusedResidualRmsNorm", "RmsNorm(x + residual + bias) and the sum", /*centred=*/false);
  return *op;
}

}  // namespace quern::ir
