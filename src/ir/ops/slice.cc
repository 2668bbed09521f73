// Slice: elements start, start + step, ... below stop along one axis of constant extent.

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  QUERN_ASSIGN(const int axis, AxisOf(context));
  const int64_t start = context.attributes.Int("start"), stop = context.attributes.Int("stop"),
                step = context.attributes.Int("step");
  if (!result.dims[axis].is_constant())
    return context.ShapeError(0, absl::StrFormat("a constant size in axis %d", axis));
  if (start < 0) return context.AttributeError("start", "0 or more");
  if (stop < start || stop > result.dims[axis].constant())
    return context.AttributeError("stop", absl::StrFormat("%d to %s", start, result.dims[axis].ToString()));
  if (step < 1) return context.AttributeError("step", "1 or more");
  result.dims[axis] = Extent((stop - start + step - 1) / step);
  return std::vector<TensorType>{std::move(result)};
}

kir::ExprRef Map(MapContext& context) {
  const Attributes& attributes = context.node().attributes;
  kir::Index at = context.index();
  kir::ExprRef& along = at[FromStart(attributes.Int("axis"), at.size())];
  along = along * static_cast<double>(attributes.Int("step")) + static_cast<double>(attributes.Int("start"));
  return context.Operand(0, std::move(at));
}

Status Reference(RefContext& context) {
  const Attributes& attributes = context.node.attributes;
  RefTensor& y = context.results[0];
  const int64_t axis = FromStart(attributes.Int("axis"), y.dims.size());
  MoveElements(*context.operands[0], y, [&](std::vector<int64_t>& index) {
    index[axis] = attributes.Int("start") + index[axis] * attributes.Int("step");
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_slice() {
  static const OpDef* const op = Make({
      .name = "Slice",
      .doc = "elements start, start + step, ... below stop along one axis of constant extent",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x", .shape = "axis of constant size"}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt},
                     {.name = "start", .kind = AttrKind::kInt},
                     {.name = "stop", .kind = AttrKind::kInt},
                     {.name = "step", .kind = AttrKind::kInt, .default_value = int64_t{1}}},
      .infer = Infer,
      .map = Map,
      .reference = Reference,
      .onnx = "Slice",
  });
  return *op;
}

}  // namespace quern::ir
