// Every op's own identity (OpDef::identity), from the first node to the last: a node sees operands that were
// simplified.

#include <optional>

#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {

StatusOr<ir::Graph> Simplify(const ir::Graph& graph) {
  Rewriter rewriter(graph, "simplify", Simplify);
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    std::optional<ir::Value> replacement;
    if (node.op->identity != nullptr) {
      const std::vector<ir::Value> inputs = rewriter.Now(node.inputs);
      QUERN_ASSIGN(replacement, node.op->identity({node, rewriter.to, inputs, rewriter.Maker(n)}));
    }
    if (replacement)
      rewriter.Replace({n, 0}, *replacement);
    else
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
  }
  QUERN_ASSIGN(const ir::Graph simplified, rewriter.Finish());
  return Dce(simplified);  // what the identities looked through may have no reader left
}

}  // namespace quern::opt
