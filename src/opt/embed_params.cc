// Params whose bytes are known become part of the graph:
//
//   %1 = Param() {name = "b"} : f32[80]   =>   %1 = Constant() hex .. : f32[80]

#include "ir/value_names.h"
#include "opt/insert_qdq.h"
#include "opt/rewriter.h"

namespace quern::opt {

StatusOr<ir::Graph> EmbedParams(const ir::Graph& graph, const ParamBytes& params) {
  Rewriter rewriter(graph, "embed_params", [&](const ir::Graph& body) { return EmbedParams(body, params); });
  for (int n = 0; n < rewriter.size(); ++n) {
    const ir::Node& node = graph.node(n);
    const auto found = ir::IsParam(node) && !IsBlock(node.results[0].dtype)
                           ? params.find(node.attributes.String("name"))
                           : params.end();
    if (found == params.end()) {
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
      continue;
    }
    QUERN_ASSIGN(
        const ir::Value value,
        rewriter.to.AddConstant(node.results[0], {found->second.begin(), found->second.end()}, rewriter.OriginOf(n)));
    rewriter.Replace({n, 0}, value);
  }
  QUERN_ASSIGN(ir::Graph embedded, rewriter.Finish());
  // Node for node the same, but a Constant is called by its label.
  embedded.quantisation = ir::MapOf(embedded, ir::SchemesOf(graph));
  return embedded;
}

}  // namespace quern::opt
