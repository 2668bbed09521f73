// OneHot: `on` where the index along the new axis is the one given, `off` elsewhere. A negative index counts from the
// end; one out of range has no `on`.

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;

// The new axis lies before this dimension of the indices.
int64_t Place(const Attributes& attributes, size_t rank) { return FromStart(attributes.Int("axis"), rank + 1); }

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &ids = context.operands[0], &on = context.operands[1];
  const int64_t axis = context.attributes.Int("axis"), rank = ids.rank(), depth = context.attributes.Int("depth");
  if (axis < -rank - 1 || axis > rank)
    return context.AttributeError("axis", absl::StrFormat("%d to %d", -rank - 1, rank));
  if (depth < 0) return context.AttributeError("depth", "0 or more");
  for (const int value : {1, 2}) {
    if (context.operands[value].rank() != 0) return context.ShapeError(value, "[]");
  }
  TensorType result{on.dtype, ids.dims};
  result.dims.insert(result.dims.begin() + Place(context.attributes, ids.dims.size()), Extent(depth));
  return std::vector<TensorType>{std::move(result)};
}

kir::ExprRef Map(MapContext& context) {
  const Attributes& attributes = context.node().attributes;
  const int64_t place = Place(attributes, context.operand_type(0).dims.size());
  kir::Index at = context.index();
  const kir::ExprRef column = at[place];
  at.erase(at.begin() + place);
  const kir::ExprRef id = kir::build::CastTo(DType::kI64, context.Operand(0, std::move(at)));
  const kir::ExprRef from_end = column - kir::build::Int(attributes.Int("depth"));
  const kir::ExprRef is = Call(Op::kOr, {Call(Op::kEq, {id, column}), Call(Op::kEq, {id, from_end})});
  return kir::build::Select(is, context.Operand(1, {}), context.Operand(2, {}));
}

Status Reference(RefContext& context) {
  const RefTensor& ids = *context.operands[0];
  RefTensor& y = context.results[0];
  const int64_t place = Place(context.node.attributes, ids.dims.size()), elements = y.elements();
  std::vector<int64_t> index(y.dims.size());
  for (int64_t at = 0; at < elements; ++at, NextIndex(y.dims, index)) {
    std::vector<int64_t> from = index;
    from.erase(from.begin() + place);
    Wide id = ids.Integer(ids.Offset(from));
    if (id < 0) id += y.dims[place];
    y.Take(at, *context.operands[id == index[place] ? 1 : 2], 0);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_one_hot() {
  static const OpDef* const op = Make({
      .name = "OneHot",
      .doc = "`on` where the index along a new axis is the one given, `off` elsewhere",
      .kind = OpKind::kIndex,
      .operands = {{.name = "indices", .kind = OperandKind::kIndex, .own_dtype = true},
                   {.name = "on", .shape = "[]"},
                   {.name = "off", .shape = "[]"}},
      .attributes =
          {{.name = "depth", .kind = AttrKind::kInt, .doc = "of the new axis"},
           {.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{-1}, .doc = "where the result has it"}},
      .infer = Infer,
      .map = Map,
      .reference = Reference,
      .onnx = "OneHot",
      .examples = {{{"i32[3, 5]", "f32[]", "f32[]"}, {{"depth", int64_t{7}}}},
                   {{"i64[S]", "i8[]", "i8[]"}, {{"depth", int64_t{3}}, {"axis", int64_t{0}}}},
                   {{"i64[]", "f32[]", "f32[]"}, {{"depth", int64_t{2}}}}},
  });
  return *op;
}

}  // namespace quern::ir
