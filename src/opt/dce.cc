// Nodes that no output depends on are dropped. Inputs stay: they are the signature of the graph. So do nodes that find
// a size which is named by what stays.

#include "ir/counted.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {

StatusOr<ir::Graph> Dce(const ir::Graph& graph) {
  std::vector<bool> live(graph.nodes().size());
  for (const ir::Value& output : graph.outputs) live[output.node] = true;
  const std::map<std::string, int, std::less<>> finders = ir::CountingNodes(graph);
  std::vector<std::string> named;
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    if (ir::IsInput(graph.nodes()[n])) live[n] = true;
    if (!live[n]) continue;
    if (!finders.empty()) ir::AddNamedSymbols(graph.nodes()[n], named);
    for (const std::string& symbol : named) {
      const auto finder = finders.find(symbol);
      if (finder != finders.end()) live[finder->second] = true;  // it stands before n, or is n
    }
    named.clear();
    for (const ir::Value& input : graph.nodes()[n].inputs) live[input.node] = true;
  }
  Rewriter rewriter(graph, "dce", Dce);
  for (int n = 0; n < rewriter.size(); ++n) {
    if (live[n]) QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
  }
  return rewriter.Finish();
}

}  // namespace quern::opt
