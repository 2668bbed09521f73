// Slice: elements start, start + step, ... below stop along one axis of constant extent.

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  QUERN_ASSIGN(const int axis, NormalAxis("Slice", context.attributes.Int("axis"), result.rank()));
  const int64_t start = context.attributes.Int("start"), stop = context.attributes.Int("stop"),
                step = context.attributes.Int("step");
  if (!result.dims[axis].is_constant() || start < 0 || stop < start || stop > result.dims[axis].constant() ||
      step < 1) {
    return absl::InvalidArgumentError(absl::StrFormat("Slice: %d to %d by %d does not lie in axis %d of %s", start,
                                                      stop, step, axis, result.ToString()));
  }
  if (IsBlock(result.dtype) && axis == result.rank() - 1)
    return absl::InvalidArgumentError("Slice: the blocks of a row cannot be cut");
  result.dims[axis] = Extent((stop - start + step - 1) / step);
  return std::vector<TensorType>{std::move(result)};
}

int64_t Axis(const Attributes& attributes, size_t rank) {
  const int64_t axis = attributes.Int("axis");
  return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
}

kir::ExprRef Map(MapContext& context) {
  const Attributes& attributes = context.node().attributes;
  kir::Index at = context.index();
  kir::ExprRef& along = at[Axis(attributes, at.size())];
  along = along * static_cast<double>(attributes.Int("step")) + static_cast<double>(attributes.Int("start"));
  return context.Operand(0, std::move(at));
}

Status Reference(RefContext& context) {
  const Attributes& attributes = context.node.attributes;
  RefTensor& y = context.results[0];
  const int64_t axis = Axis(attributes, y.dims.size());
  std::vector<int64_t> index(y.dims.size());
  for (double& out : y.data) {
    std::vector<int64_t> at = index;
    at[axis] = attributes.Int("start") + at[axis] * attributes.Int("step");
    out = context.operands[0]->At(at);
    NextIndex(y.dims, index);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_slice() {
  static const OpDef* const op = Make({
      .name = "Slice",
      .doc = "elements start, start + step, ... below stop along one axis of constant extent",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x"}},
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
