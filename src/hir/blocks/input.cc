// Input{name}: a tensor that the caller gives at every run.

#include "hir/block.h"

namespace quern::hir {

const BlockDef& Block_input() {
  static const BlockDef* const block = Make({
      .name = "Input",
      .doc = "a tensor that the caller gives at every run",
      .label = "input",
      .attributes = {{.name = "name", .kind = ir::AttrKind::kString}},
      .needs = "type",
      .infer = [](const InferContext& c) -> StatusOr<std::vector<TensorType>> {
        const TensorType& type = c.node.results[0];
        if (!IsBlock(type.dtype)) return c.node.results;
        return c.Error(DiagnosticCode::kUnsupported, c.attributes.String("name"), "any scalar dtype", type.ToString());
      },
      .lower = [](LowerContext& c) -> StatusOr<std::vector<ir::Value>> {
        QUERN_ASSIGN(const ir::Value value,
                     c.graph.AddInput(c.attributes().String("name"), c.node.results[0], c.origin()));
        return std::vector<ir::Value>{value};
      },
  });
  return *block;
}

bool IsInput(const Node& node) { return node.block == &Block_input(); }

}  // namespace quern::hir
