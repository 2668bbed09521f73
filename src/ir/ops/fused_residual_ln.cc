// FusedResidualLN: LayerNorm(x + residual), and the sum itself as a second result.

#include "ir/residual_norm.h"

namespace quern::ir {

const OpDef& Op_fused_residual_ln() {
  static const OpDef* const op =
      ResidualNorm("FusedResidualLN", "LayerNorm(x + residual + bias) and the sum", /*centred=*/true);
  return *op;
}

}  // namespace quern::ir
