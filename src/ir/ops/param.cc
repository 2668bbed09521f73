// Param: a weight, bound once; its extents are constants.

#include "ir/leaf.h"

namespace quern::ir {

const OpDef& Op_param() {
  static const OpDef* const op = Leaf("Param", "a weight, bound once and unchanged between runs",
                                      {{.name = "name", .kind = AttrKind::kString, .doc = "unique among the params"}});
  return *op;
}

bool IsParam(const Node& node) { return node.op == &Op_param(); }

}  // namespace quern::ir
