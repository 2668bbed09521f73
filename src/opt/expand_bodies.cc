// Composite ops with bodies replaced by what they stand for, so that every pass sees what the bodies hold:
//
//   %1 = CustomFn(%0) : f32[8] body graph body {      =>   %1 = Silu(%0) : f32[8]
//     %0 = Input() {name = "x"} : f32[8]
//     %1 = Silu(%0) : f32[8]
//     return %1
//   }

#include "ir/op.h"
#include "opt/expand_nodes.h"

namespace quern::opt {

StatusOr<ir::Graph> ExpandBodies(const ir::Graph& graph) {
  return ExpandNodes(graph, "expand_bodies", [](const ir::Node& node) {
    return node.op->kind == ir::OpKind::kComposite && !node.bodies.empty();
  });
}

}  // namespace quern::opt
