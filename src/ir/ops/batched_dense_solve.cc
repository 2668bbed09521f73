// BatchedDenseSolve: x of a x = b by LU with partial pivoting, batch by batch. Where a is singular some of x is not
// finite.

#include "ir/dense_solve.h"

namespace quern::ir {

const OpDef& Op_batched_dense_solve() {
  static const OpDef* const op =
      SolveOfDense("BatchedDenseSolve", "x of a x = b, batch by batch", /*batched=*/true,
                   {{{"f32[2, 5, 5]", "f32[2, 5, 3]"}}, {{"f64[S, 7, 7]", "f64[S, 7]"}, {{"vector", true}}}});
  return *op;
}

}  // namespace quern::ir
