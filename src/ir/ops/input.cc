// Input: a tensor that the caller provides on every run.

#include "ir/leaf.h"

namespace quern::ir {

const OpDef& Op_input() {
  static const OpDef* const op = Leaf("Input", "a tensor that the caller provides on every run",
                                      {{.name = "name", .kind = AttrKind::kString, .doc = "unique among the inputs"}});
  return *op;
}

bool IsInput(const Node& node) { return node.op == &Op_input(); }

}  // namespace quern::ir
