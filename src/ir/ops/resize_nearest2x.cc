// ResizeNearest2x: every element of the last two dimensions twice in each direction.

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  if (result.rank() < 2) return context.ShapeError(0, "[.., H, W]");
  for (int d = result.rank() - 2; d < result.rank(); ++d) result.dims[d] = result.dims[d] * Extent(2);
  return std::vector<TensorType>{std::move(result)};
}

kir::ExprRef Map(MapContext& context) {
  kir::Index at = context.index();
  for (size_t d = at.size() - 2; d < at.size(); ++d) at[d] = at[d] / kir::build::Int(2);
  return context.Operand(0, std::move(at));
}

Status Reference(RefContext& context) {
  MoveElements(*context.operands[0], context.results[0], [](std::vector<int64_t>& index) {
    index[index.size() - 2] /= 2;
    index.back() /= 2;
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_resize_nearest2x() {
  static const OpDef* const op = Make({
      .name = "ResizeNearest2x",
      .doc = "every element of the last two dimensions twice in each direction",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x", .shape = "[.., H, W]"}},
      .infer = Infer,
      .map = Map,
      .reference = Reference,
      .onnx = "Resize",
      .examples = {{{"f32[2, 3, 5, 7]"}}, {{"f16[1, S, 3]"}}, {{"u8[3, 17]"}}},
  });
  return *op;
}

}  // namespace quern::ir
