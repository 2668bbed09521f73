// A product whose sums have few terms is arithmetic of columns beside rows: as quick as its result is written, where
// panels and tiles would wait for each other. Of f32 [M, 2] by [2, N]:
//
//   %2 = MatMul(%0, %1)       =>   %2 = Narrow(%0) {axis = 1, start = 0, length = 1}     [M, 1]
//                                  %3 = Narrow(%1) {axis = 0, start = 0, length = 1}     [1, N]
//                                  %4 = Mul(%2, %3)
//                                  %5 = Add(%4, 0.0)                                     a sum that starts with 0
//                                  ...                                                   the same of column and row 1
//                                  %9 = Add(%5, %8)
//
// Halves round once a product, so those have one term. After attention is recognised, whose heads may be as small.

#include <numeric>

#include "ir/product.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

using ir::Value;

// Element k along an axis, as a dimension of one.
StatusOr<Value> At(const ir::MakeNode& make, const ir::Graph& graph, Value value, int axis, int64_t k) {
  if (graph.type(value).dims[axis] == Extent(1)) return value;
  return make("Narrow", {value},
              {{"axis", static_cast<int64_t>(axis)},
               {"start", std::vector<Extent>{Extent(k)}},
               {"length", std::vector<Extent>{Extent(1)}}});
}

// The right side as [.., K, N]. Each row of the result reads it, so what is turned has memory of its own.
StatusOr<Value> RowsOf(const ir::MakeNode& make, const ir::Graph& graph, Value right, bool transposed) {
  if (!transposed) return right;
  const ir::TensorType type = graph.type(right);
  std::vector<int64_t> perm(type.dims.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  QUERN_ASSIGN(const Value turned, ir::MakePermuted(make, right, std::move(perm)));
  if (type.dims.back() == Extent(1)) return turned;
  return ir::MakeCopy(make, turned, type.dtype);
}

StatusOr<Value> SumOf(Rewriter& rewriter, int n, const ir::Node& node) {
  const ir::MakeNode make = rewriter.Maker(n);
  const ir::Graph& graph = rewriter.to;
  const Value left = rewriter.Now(node.inputs[0]);
  QUERN_ASSIGN(const Value right, RowsOf(make, graph, rewriter.Now(node.inputs[1]), ir::ReadsRows(node)));
  const DType dtype = node.results[0].dtype;
  const std::vector<uint8_t> zero(ScalarBytes(dtype));
  QUERN_ASSIGN(Value sum, rewriter.to.AddConstant({dtype, {}}, zero, rewriter.OriginOf(n)));
  const int64_t terms = graph.type(left).dims.back().constant();
  for (int64_t k = 0; k < terms; ++k) {
    QUERN_ASSIGN(const Value column, At(make, graph, left, graph.type(left).rank() - 1, k));
    QUERN_ASSIGN(const Value row, At(make, graph, right, graph.type(right).rank() - 2, k));
    QUERN_ASSIGN(const Value term, make("Mul", {column, row}, {}));
    QUERN_ASSIGN(sum, make("Add", {term, sum}, {}));
  }
  return sum;
}

}  // namespace

StatusOr<ir::Graph> ShortSums(const ir::Graph& graph) {
  Rewriter rewriter(graph, "short_sums", ShortSums);
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    if (ir::IsShortSum(graph, node)) {
      QUERN_ASSIGN(const Value sum, SumOf(rewriter, n, node));
      rewriter.Replace({n, 0}, sum);
    } else {
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
    }
  }
  return rewriter.Finish();
}

}  // namespace quern::opt
