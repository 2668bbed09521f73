// Composite ops replaced by their expansion: Softmax(x) becomes Reduce max, Sub, Exp, Reduce sum, Div.

#include "ir/op.h"
#include "opt/expand_nodes.h"
#include "opt/passes.h"

namespace quern::opt {

StatusOr<ir::Graph> ExpandComposites(const ir::Graph& graph) {
  QUERN_ASSIGN(const ir::Graph plain, ExpandBodies(graph));
  return ExpandNodes(plain, "expand_composites", ir::IsExpanded, ComplexAsPairs);
}

}  // namespace quern::opt
