// Sums of squares of the columns of what a weight is multiplied with: its importance (quern/importance.h).
#pragma once

#include "ir/graph.h"

namespace quern::ir {

// Of the rows of x, [.., K], of a float dtype: f32[K].
StatusOr<Value> MakeColumnSquares(Graph& graph, Value x);

// The same of the rows of x, [M, K], that `which` [M] gives to each of so many matrices.
struct MatrixSquares {
  Value sums;    // f32[matrices, K]
  Value counts;  // f32[matrices]: of rows
};
StatusOr<MatrixSquares> MakeMatrixSquares(Graph& graph, Value x, Value which, int64_t matrices);

}  // namespace quern::ir
