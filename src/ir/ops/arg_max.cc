// ArgMax: the index of the largest element along one axis, i64.

#include "ir/arg_fold.h"

namespace quern::ir {

const OpDef& Op_arg_max() {
  static const OpDef* const op =
      ArgFold("ArgMax", "index of the largest element along one axis; a NaN is larger than all, and -1 is none", true);
  return *op;
}

}  // namespace quern::ir
