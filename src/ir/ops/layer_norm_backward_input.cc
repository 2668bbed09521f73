// LayerNormBackwardInput: the gradient of a LayerNorm in x.

#include "ir/norm_backward.h"

namespace quern::ir {

const OpDef& Op_layer_norm_backward_input() {
  static const OpDef* const op =
      NormBackwardInput("LayerNormBackwardInput", "the gradient of a LayerNorm in x", /*centred=*/true);
  return *op;
}

}  // namespace quern::ir
