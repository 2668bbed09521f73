// Constant: a small tensor whose little-endian bytes are part of the graph.

#include "ir/leaf.h"

namespace quern::ir {

const OpDef& Op_constant() {
  static const OpDef* const op = Leaf("Constant", "a tensor whose bytes are part of the graph", {});
  return *op;
}

bool IsConstant(const Node& node) { return node.op == &Op_constant(); }

}  // namespace quern::ir
