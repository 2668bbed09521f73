// Size: the value of an extent, which symbols may make: positions, masks and counts of a graph whose sizes are not
// fixed.

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  if (context.attributes.Extents("extent").size() != 1) return context.AttributeError("extent", "one extent");
  return std::vector<TensorType>{{DType::kI64, {}}};
}

Status Reference(RefContext& context) {
  context.results[0].SetInteger(0, SizesOf(context.node.attributes.Extents("extent"), context.binding)[0]);
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_size() {
  static const OpDef* const op = Make({
      .name = "Size",
      .doc = "the value of an extent, i64",
      .kind = OpKind::kIndex,
      .attributes = {{.name = "extent", .kind = AttrKind::kExtents, .doc = "one extent"}},
      .infer = Infer,
      .map = [](MapContext& c) { return kir::build::FromExtent(c.node().attributes.Extents("extent")[0]); },
      .reference = Reference,
      .examples = {{{}, {{"extent", std::vector<Extent>{Extent::Symbol("S") * Extent(3) + Extent(1)}}}}},
  });
  return *op;
}

}  // namespace quern::ir
