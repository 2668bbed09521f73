// Region: a sub-graph that becomes one piece of generated code. Made by fusion, never by a builder.

#include "ir/leaf.h"

namespace quern::ir {

const OpDef& Op_region() {
  static const OpDef* const op = [] {
    OpDef* region =
        Leaf("Region", "a fused sub-graph: its body, over the operands, in one piece of generated code",
             {{.name = "family", .kind = AttrKind::kString, .doc = "map, reduce, matmul, attention or update"}});
    region->kind = OpKind::kRegion;
    region->bodies = {"body"};
    return region;
  }();
  return *op;
}

}  // namespace quern::ir
