// CumProd: products of the elements so far along one axis.

#include "ir/cumulative.h"

namespace quern::ir {

const OpDef& Op_cum_prod() {
  static const OpDef* const op =
      Cumulative("CumProd", "products of the elements so far along one axis", kir::ReduceOp::kProd, "CumProd");
  return *op;
}

}  // namespace quern::ir
