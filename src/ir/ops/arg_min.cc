// ArgMin: the index of the smallest element along one axis, i64.

#include "ir/arg_fold.h"

namespace quern::ir {

const OpDef& Op_arg_min() {
  static const OpDef* const op = ArgFold(
      "ArgMin", "index of the smallest element along one axis; a NaN is smaller than all, and -1 is none", false);
  return *op;
}

}  // namespace quern::ir
