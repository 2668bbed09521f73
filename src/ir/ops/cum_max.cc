// CumMax: the largest of the elements so far along one axis, and where it stands: the first of equal ones, and from the
// first NaN on that NaN, as ArgMax says of each beginning of a line.

#include "ir/arg_fold.h"

namespace quern::ir {

const OpDef& Op_cum_max() {
  static const OpDef* const op =
      LargestSoFar("CumMax", "the largest of the elements so far along one axis, and where it stands");
  return *op;
}

}  // namespace quern::ir
