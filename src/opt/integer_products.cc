// Products of what DequantizeLinear makes of bytes are added up in integers, and multiplied by the scales once for each
// sum; ir/integer_product.h has the form. One that meets anything else is computed in floats, as it stands.

#include "ir/integer_product.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace quern::opt {

StatusOr<ir::Graph> IntegerProducts(const ir::Graph& graph) {
  Rewriter rewriter(graph, "integer_products", IntegerProducts);
  for (int n = 0; n < rewriter.size(); ++n) {
    ir::Node node = graph.node(n);
    node.inputs = rewriter.Now(node.inputs);
    QUERN_ASSIGN(const std::optional<ir::Value> made, ir::MakeIntegerProduct(rewriter.to, node, rewriter.OriginOf(n)));
    if (made)
      rewriter.Replace({n, 0}, *made);
    else
      QUERN_RETURN_IF_ERROR(rewriter.Copy(n));
  }
  return rewriter.Finish();
}

}  // namespace quern::opt
