#include "ir/column_squares.h"

#include <numeric>

#include "ir/composite.h"

namespace quern::ir {

StatusOr<Value> MakeColumnSquares(Graph& graph, Value x) {
  std::vector<int64_t> axes(graph.type(x).dims.size() - 1);
  std::iota(axes.begin(), axes.end(), 0);
  Expansion e(graph, -1);
  QUERN_ASSIGN(const std::vector<Value> made, e.Finish({e.Add("ReduceSumSquare", {e.Wide(x)}, {{"axes", axes}})}));
  return made[0];
}

StatusOr<MatrixSquares> MakeMatrixSquares(Graph& graph, Value x, Value which, int64_t matrices) {
  const std::vector<Extent> rows = {Extent(matrices)}, count = {graph.type(x).dims[0]};
  Expansion e(graph, -1);
  const Value wide = e.Wide(x);
  const Value ones = e.Add("Expand", {e.Scalar(1, DType::kF32)}, {{"shape", count}});
  QUERN_ASSIGN(const std::vector<Value> made,
               e.Finish({e.Add("ScatterAdd", {e.Add("Mul", {wide, wide}), which}, {{"rows", rows}}),
                         e.Add("ScatterAdd", {ones, which}, {{"rows", rows}})}));
  return MatrixSquares{made[0], made[1]};
}

}  // namespace quern::ir
