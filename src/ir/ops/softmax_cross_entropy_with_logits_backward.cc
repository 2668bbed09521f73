// SoftmaxCrossEntropyWithLogitsBackward: (softmax(logits) - labels) dloss; rows that do not count have 0.

#include "ir/cross_entropy.h"

namespace quern::ir {

const OpDef& Op_softmax_cross_entropy_with_logits_backward() {
  static const OpDef* const op = CrossEntropy("SoftmaxCrossEntropyWithLogitsBackward",
                                              "the gradient of the loss in the logits", /*backward=*/true);
  return *op;
}

}  // namespace quern::ir
