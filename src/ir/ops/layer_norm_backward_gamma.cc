// LayerNormBackwardGamma: the gradient of a LayerNorm in gamma.

#include "ir/norm_backward.h"

namespace quern::ir {

const OpDef& Op_layer_norm_backward_gamma() {
  static const OpDef* const op =
      NormBackwardGamma("LayerNormBackwardGamma", "the gradient of a LayerNorm in gamma", /*centred=*/true);
  return *op;
}

}  // namespace quern::ir
