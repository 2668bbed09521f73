// Softmax cross-entropy with logits [N, C] and labels, which are indices [N] or shares [N, C].
//
//   loss of an index    logsumexp(x) - x[label]; 0 where the label is `ignore`, NaN where it is another without a place
//   loss of shares      the sum of t (logsumexp(x) - x)
#pragma once

#include "ir/op.h"

namespace quern::ir {

// The loss, or with dloss [N] behind the labels its gradient in the logits.
const OpDef* CrossEntropy(const char* name, const char* doc, bool backward);

}  // namespace quern::ir
