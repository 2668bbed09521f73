// GatherElements: y[i..] = x[i.., indices[i..], i..] along one axis. A negative index counts from the end; one out of
// range is clamped, as Gather does.

#include <algorithm>

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &indices = context.operands[1];
  QUERN_ASSIGN(const int axis, AxisOf(context));
  if (!context.AtLeast(x.dims[axis], 1))
    return context.ShapeError(0, absl::StrFormat("1 element or more along axis %d", axis));
  bool fits = indices.rank() == x.rank();
  for (int d = 0; fits && d < x.rank(); ++d) fits = d == axis || context.AtLeast(x.dims[d], indices.dims[d]);
  if (!fits)
    return context.ShapeError(1, absl::StrFormat("no dimension longer than %s but axis %d", ToString(x.dims), axis));
  return std::vector<TensorType>{{x.dtype, indices.dims}};
}

kir::ExprRef Map(MapContext& context) {
  kir::Index at = context.index();
  const int64_t axis = FromStart(context.node().attributes.Int("axis"), at.size());
  const kir::ExprRef id = kir::build::CastTo(DType::kI64, context.Operand(1, at));
  at[axis] = IndexInside(id, kir::build::FromExtent(context.operand_type(0).dims[axis]));
  return context.Operand(0, std::move(at));
}

Status Reference(RefContext& context) {
  const RefTensor &x = *context.operands[0], &indices = *context.operands[1];
  const int64_t axis = FromStart(context.node.attributes.Int("axis"), x.dims.size());
  MoveElements(x, context.results[0], [&](std::vector<int64_t>& index) {
    Wide id = indices.Integer(indices.Offset(index));
    if (id < 0) id += x.dims[axis];
    index[axis] = static_cast<int64_t>(std::clamp<Wide>(id, 0, x.dims[axis] - 1));
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_gather_elements() {
  static const OpDef* const op = Make({
      .name = "GatherElements",
      .doc = "elements of x at the places that `indices` names along one axis",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x", .shape = "rank 1 or more"},
                   {.name = "indices",
                    .kind = OperandKind::kIndex,
                    .shape = "no longer than x but along axis",
                    .own_dtype = true}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{0}}},
      .infer = Infer,
      .map = Map,
      .reference = Reference,
      .onnx = "GatherElements",
      .examples = {{{"f32[5, 7]", "i64[3, 7]"}},
                   {{"i16[S, 7]", "i32[S, 2]"}, {{"axis", int64_t{-1}}}},
                   {{"f32[3, 5, 2]", "i32[2, 11, 1]"}, {{"axis", int64_t{1}}}}},
  });
  return *op;
}

}  // namespace quern::ir
