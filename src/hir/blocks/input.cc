// Input{name}: a tensor that the caller gives at every run.

#include "hir/block.h"

namespace quern::hir {

const BlockDef& Block_input() {
  static const BlockDef* const block = Make({
      .name = "Input",
      .doc = "a tensor that the caller gives at every run",
      .label = "input",
      .attributes = {{.name = "name", .kind = ir::AttrKind::kString}},
      .infer = [](const InferContext& c) -> StatusOr<std::vector<TensorType>> { return c.node.results; },
      .lower = [](LowerContext& c) -> StatusOr<std::vector<ir::Value>> {
        QUERN_ASSIGN(const ir::Value value,
                     c.graph.AddInput(c.attributes().String("name"), c.node.results[0], c.origin()));
        return std::vector<ir::Value>{value};
      },
  });
  return *block;
}

}  // namespace quern::hir
