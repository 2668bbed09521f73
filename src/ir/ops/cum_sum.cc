// CumSum: sums of the elements so far along one axis.

#include "ir/cumulative.h"

namespace quern::ir {

const OpDef& Op_cum_sum() {
  static const OpDef* const op =
      Cumulative("CumSum", "sums of the elements so far along one axis", kir::ReduceOp::kSum, "CumSum");
  return *op;
}

}  // namespace quern::ir
