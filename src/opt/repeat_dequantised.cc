// Floats that stand for bytes are made by each of those that read them, so that bytes go through memory:
//
//   %4 = Cast(%3) {to = f32} : f32[1, 28, 28, 64]       %4 = Cast(%3)   %5 = Mul(%4, 0.1)   %6 = Add(%5, %0)
//   %5 = Mul(%4, 0.1)                              =>   %7 = Cast(%3)   %8 = Mul(%7, 0.1)   %9 = Silu(%8)
//   %6 = Add(%5, %0)
//   %7 = Silu(%5)
//
// For elementwise readers alone: others would read every element several times, or not on the way. After cse, which
// would have them together again.

#include "ir/linear_quantise.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {

StatusOr<ir::Graph> RepeatDequantised(const ir::Graph& graph) {
  const std::vector<bool> once = OncePerBinding(graph);
  Rewriter rewriter(graph, "repeat_dequantised", RepeatDequantised);
  std::vector<bool> taken(graph.nodes().size());  // by a reader
  for (int n = 0; n < rewriter.size(); ++n) {
    if (graph.node(n).op->kind == ir::OpKind::kElementwise) {
      for (const ir::Value& input : graph.node(n).inputs) {
        const std::vector<int> chain = ir::DequantisedBy(graph, input.node, once);
        // What the chain itself is made of.
        const bool inside = !ir::DequantisedBy(graph, n, once).empty();
        if (chain.empty() || inside || !taken[input.node]) {
          taken[input.node] = !inside;
          continue;
        }
        for (auto at = chain.rbegin(); at != chain.rend(); ++at) QUERN_RETURN_IF_ERROR(rewriter.Copy(*at));
      }
    }
    QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
  }
  return rewriter.Finish();
}

}  // namespace quern::opt
