// Products with a weight stored as [K, N] read it transposed, so that rows of K lie together:
//
//   %2 = MatMul(%0, %1)       =>   %2 = Transpose(%1) {perm = [1, 0]}
//                                  %3 = MatMul(%0, %2) {transpose_b = true}
//
// The Transpose depends on a Param alone and so happens once per binding, never per run.

#include <map>

#include "ir/product.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {
namespace {

bool Wanted(const ir::Graph& graph, const ir::Node& node, const std::vector<bool>& once) {
  if (!ir::IsProduct(node) || ir::ReadsRows(node) || once[node.inputs[0].node]) return false;
  const ir::TensorType &x = graph.type(node.inputs[0]), &w = graph.type(node.inputs[1]);
  return ir::IsParam(graph.node(node.inputs[1].node)) && w.rank() == 2 && x.dtype == DType::kF32 &&
         (w.dtype == DType::kF32 || w.dtype == DType::kF16);
}

}  // namespace

StatusOr<ir::Graph> HoistWeights(const ir::Graph& graph) {
  const std::vector<bool> once = OncePerBinding(graph);
  Rewriter rewriter(graph, "hoist_weights", HoistWeights);
  std::map<int, ir::Value> transposed;  // by old Param
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    if (!Wanted(graph, node, once)) {
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
      continue;
    }
    const auto [it, fresh] = transposed.emplace(node.inputs[1].node, ir::Value{});
    if (fresh) {
      QUERN_ASSIGN(it->second, ir::MakeTransposed(rewriter.Maker(n), rewriter.Now(node.inputs[1])));
    }
    QUERN_ASSIGN(const ir::Value product,
                 ir::MakeProductOfRows(rewriter.Maker(n), rewriter.Now(node.inputs[0]), it->second));
    rewriter.Replace({n, 0}, product);
  }
  return rewriter.Finish();
}

}  // namespace quern::opt
