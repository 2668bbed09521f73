// Gather: rows (or slices) of a table by index along one axis: table[:axis] ++ indices ++ table[axis+1:].
//
// A negative index counts from the end; one out of range is clamped, so that no kernel reads outside the table. Callers
// that want an error check the ids they pass in. A table in a block format gives f32.

#include <algorithm>

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &table = context.operands[0], &indices = context.operands[1];
  QUERN_ASSIGN(const int axis, NormalAxis("Gather", context.attributes.Int("axis"), table.rank()));
  if (IsBlock(table.dtype) && axis == table.rank() - 1)
    return absl::InvalidArgumentError("Gather: the blocks of a row cannot be cut");
  TensorType result{IsBlock(table.dtype) ? DType::kF32 : table.dtype, {}};
  result.dims.assign(table.dims.begin(), table.dims.begin() + axis);
  result.dims.insert(result.dims.end(), indices.dims.begin(), indices.dims.end());
  result.dims.insert(result.dims.end(), table.dims.begin() + axis + 1, table.dims.end());
  return std::vector<TensorType>{std::move(result)};
}

int64_t Axis(const Attributes& attributes, int rank) {
  const int64_t axis = attributes.Int("axis");
  return axis < 0 ? axis + rank : axis;
}

kir::ExprRef Map(MapContext& context) {
  namespace kb = kir::build;
  const TensorType& table = context.operand_type(0);
  const int rank = context.operand_type(1).rank();
  const int64_t axis = Axis(context.node().attributes, table.rank());
  const kir::Index& index = context.index();
  const kir::Index which(index.begin() + axis, index.begin() + axis + rank);
  const kir::ExprRef id = kb::CastTo(DType::kI64, context.Operand(1, which));
  const kir::ExprRef size = kb::FromExtent(table.dims[axis]);
  kir::Index at(index.begin(), index.begin() + axis);
  at.push_back(IndexInside(id, size));
  at.insert(at.end(), index.begin() + axis + rank, index.end());
  return context.Operand(0, std::move(at));
}

Status Reference(RefContext& context) {
  const RefTensor &table = *context.operands[0], &indices = *context.operands[1];
  RefTensor& y = context.results[0];
  const int64_t axis = Axis(context.node.attributes, static_cast<int>(table.dims.size()));
  std::vector<int64_t> index(y.dims.size());
  for (double& out : y.data) {
    const auto begin = index.begin() + axis, end = begin + static_cast<int64_t>(indices.dims.size());
    int64_t id = static_cast<int64_t>(indices.At(std::vector<int64_t>(begin, end)));
    if (id < 0) id += table.dims[axis];
    std::vector<int64_t> at(index.begin(), begin);
    at.push_back(std::clamp<int64_t>(id, 0, table.dims[axis] - 1));
    at.insert(at.end(), end, index.end());
    out = table.At(at);
    NextIndex(y.dims, index);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_gather() {
  static const OpDef* const op = Make({
      .name = "Gather",
      .doc = "slices of a table by index along one axis",
      .kind = OpKind::kIndex,
      .operands = {{.name = "table", .own_dtype = true},
                   {.name = "indices", .kind = OperandKind::kIndex, .own_dtype = true}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{0}}},
      .infer = Infer,
      .map = Map,
      .reference = Reference,
      .onnx = "Gather",
  });
  return *op;
}

}  // namespace quern::ir
