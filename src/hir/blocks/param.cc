// Param{name}: a weight, given once. Its extents are numbers.

#include "hir/block.h"

namespace quern::hir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  const TensorType& type = c.node.results[0];
  for (const Extent& dim : type.dims) {
    if (!dim.is_constant()) {
      return c.Error(DiagnosticCode::kShapeMismatch, c.attributes.String("name"), "constant extents", type.ToString());
    }
  }
  const int block = Row(type.dtype).block_elements;
  if (block > 1 && (type.rank() < 1 || type.dims.back().constant() % block != 0)) {
    return c.Error(DiagnosticCode::kShapeMismatch, c.attributes.String("name"),
                   absl::StrFormat("rows of whole blocks of %d", block), type.ToString());
  }
  return c.node.results;
}

}  // namespace

const BlockDef& Block_param() {
  static const BlockDef* const block = Make({
      .name = "Param",
      .doc = "a weight, given once",
      .label = "param",
      .attributes = {{.name = "name", .kind = ir::AttrKind::kString}},
      .needs = "type",
      .infer = Infer,
      .lower = [](LowerContext& c) -> StatusOr<std::vector<ir::Value>> {
        QUERN_ASSIGN(const ir::Value value,
                     c.graph.AddParam(c.attributes().String("name"), c.node.results[0], c.origin()));
        return std::vector<ir::Value>{value};
      },
  });
  return *block;
}

bool IsParam(const Node& node) { return node.block == &Block_param(); }

}  // namespace quern::hir
