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

#include "ir/product.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {

StatusOr<ir::Graph> ShortSums(const ir::Graph& graph) {
  Rewriter rewriter(graph, "short_sums", ShortSums);
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    if (ir::IsShortSum(graph, node)) {
      const DType dtype = node.results[0].dtype;
      QUERN_ASSIGN(const ir::Value zero, rewriter.to.AddConstant({dtype, {}}, std::vector<uint8_t>(ScalarBytes(dtype)),
                                                                 rewriter.OriginOf(n)));
      QUERN_ASSIGN(const ir::Value sum, ir::MakeShortSum(rewriter.Maker(n), rewriter.to, rewriter.Now(node.inputs[0]),
                                                         rewriter.Now(node.inputs[1]), ir::ReadsRows(node), zero));
      rewriter.Replace({n, 0}, sum);
    } else {
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
    }
  }
  return rewriter.Finish();
}

}  // namespace quern::opt
