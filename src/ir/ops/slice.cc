// Slice: elements start, start + step, ... below stop, or below the end, along one axis.

#include "ir/identity.h"
#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;

constexpr int64_t kEnd = INT64_MAX;  // of the axis

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  QUERN_ASSIGN(const int axis, AxisOf(context));
  const int64_t start = context.attributes.Int("start"), stop = context.attributes.Int("stop"),
                step = context.attributes.Int("step");
  const Extent size = result.dims[axis], end = stop == kEnd ? size : Extent(stop);
  if (start < 0 || !context.AtLeast(size, start))
    return context.AttributeError("start", absl::StrFormat("0 to %s", size.ToString()));
  if (!context.AtLeast(end, start) || !context.AtLeast(size, end))
    return context.AttributeError("stop", absl::StrFormat("%d to %s", start, size.ToString()));
  if (step < 1) return context.AttributeError("step", "1 or more");
  result.dims[axis] = (end - start).CeilDividedBy(step);
  return std::vector<TensorType>{std::move(result)};
}

kir::ExprRef Map(MapContext& context) {
  const Attributes& attributes = context.node().attributes;
  kir::Index at = context.index();
  kir::ExprRef& along = at[FromStart(attributes.Int("axis"), at.size())];
  along = along * static_cast<double>(attributes.Int("step")) + static_cast<double>(attributes.Int("start"));
  return context.Operand(0, std::move(at));
}

std::optional<Strides> Steps(const Node& node, const Strides& x) {
  Strides made{node.results[0].dims, x.steps, x.offset};
  Extent& step = made.steps[FromStart(node.attributes.Int("axis"), x.dims.size())];
  made.offset = made.offset + step * node.attributes.Int("start");
  step = step * node.attributes.Int("step");
  return made;
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
      .doc = "elements start, start + step, ... below stop, or below the end, along one axis",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x"}},
      .attributes =
          {{.name = "axis", .kind = AttrKind::kInt},
           {.name = "start", .kind = AttrKind::kInt},
           {.name = "stop", .kind = AttrKind::kInt, .default_value = kEnd, .doc = "the largest is the end of the axis"},
           {.name = "step", .kind = AttrKind::kInt, .default_value = int64_t{1}}},
      .infer = Infer,
      .map = Map,
      .strides = Steps,
      .identity = Unchanged,
      .reference = Reference,
      .onnx = "Slice",
  });
  return *op;
}

}  // namespace quern::ir
