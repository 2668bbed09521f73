// Nodes that no output depends on are dropped. Inputs stay: they are the signature of the graph. So do nodes that find
// a size: what stays may name it, and a symbol that nothing finds would be one that runs are given.

#include "ir/counted.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {

StatusOr<ir::Graph> Dce(const ir::Graph& graph) {
  std::vector<bool> live(graph.nodes().size());
  for (const ir::Value& output : graph.outputs) live[output.node] = true;
  for (const auto& [symbol, finder] : ir::CountingNodes(graph)) live[finder] = true;
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    if (ir::IsInput(graph.nodes()[n])) live[n] = true;
    if (!live[n]) continue;
    for (const ir::Value& input : graph.nodes()[n].inputs) live[input.node] = true;
  }
  Rewriter rewriter(graph, "dce", Dce);
  for (int n = 0; n < rewriter.size(); ++n) {
    if (live[n]) QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
  }
  return rewriter.Finish();
}

}  // namespace quern::opt
