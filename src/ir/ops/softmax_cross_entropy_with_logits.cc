// SoftmaxCrossEntropyWithLogits: the loss of each row of logits.

#include "ir/cross_entropy.h"

namespace quern::ir {

const OpDef& Op_softmax_cross_entropy_with_logits() {
  static const OpDef* const op =
      CrossEntropy("SoftmaxCrossEntropyWithLogits", "softmax cross-entropy of each row of logits", /*backward=*/false);
  return *op;
}

}  // namespace quern::ir
