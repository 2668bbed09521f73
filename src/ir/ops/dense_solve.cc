// DenseSolve: x of a x = b by LU with partial pivoting. Where a is singular some of x is not
// finite.

#include "ir/dense_solve.h"

namespace quern::ir {

const OpDef& Op_dense_solve() {
  static const OpDef* const op =
      SolveOfDense("DenseSolve", "x of a x = b", /*batched=*/false,
                   {{{"f32[5, 5]", "f32[5, 3]"}}, {{"f64[7, 7]", "f64[7]"}, {{"vector", true}}}});
  return *op;
}

}  // namespace quern::ir
