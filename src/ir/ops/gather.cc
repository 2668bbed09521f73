// Gather: rows (or slices) of a table by index along one axis: table[:axis] ++ indices ++ table[axis+1:].
//
// A negative index counts from the end; one out of range is clamped, so that no kernel reads outside the table. Callers
// that want an error check the ids they pass in. A table in a block format gives f32.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/identity.h"
#include "ir/pairs.h"
#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &table = context.operands[0], &indices = context.operands[1];
  QUERN_ASSIGN(const int axis, AxisOf(context));
  if (IsBlock(table.dtype) && axis == table.rank() - 1)
    return context.AttributeError("axis", "one of whole rows beside a block-format table");
  if (!context.AtLeast(table.dims[axis], 1))
    return context.ShapeError(0, absl::StrFormat("1 element or more along axis %d", axis));
  TensorType result{IsBlock(table.dtype) ? DType::kF32 : table.dtype, {}};
  result.dims.assign(table.dims.begin(), table.dims.begin() + axis);
  result.dims.insert(result.dims.end(), indices.dims.begin(), indices.dims.end());
  result.dims.insert(result.dims.end(), table.dims.begin() + axis + 1, table.dims.end());
  return std::vector<TensorType>{std::move(result)};
}

kir::ExprRef Map(MapContext& context) {
  namespace kb = kir::build;
  const TensorType& table = context.operand_type(0);
  const int rank = context.operand_type(1).rank();
  const int64_t axis = FromStart(context.node().attributes.Int("axis"), table.dims.size());
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
  const int64_t axis = FromStart(context.node.attributes.Int("axis"), table.dims.size());
  MoveElements(table, y, [&](std::vector<int64_t>& index) {
    const auto begin = index.begin() + axis, end = begin + static_cast<int64_t>(indices.dims.size());
    Wide id = indices.Integer(indices.Offset(std::vector<int64_t>(begin, end)));
    if (id < 0) id += table.dims[axis];
    index.erase(begin, end);
    index.insert(index.begin() + axis, static_cast<int64_t>(std::clamp<Wide>(id, 0, table.dims[axis] - 1)));
  });
  return absl::OkStatus();
}

// Slices of slices, each of which is there and in its place.
Replacement Identity(const IdentityContext& context) {
  if (FromStart(context.node.attributes.Int("axis"), context.type(0).dims.size()) != 0) return std::nullopt;
  const std::optional<Value> table = AllRowsOf(context.graph, context.inputs[0]);
  if (!table) return std::nullopt;
  return MakePicked(context.make, *table, context.inputs[1]);
}

}  // namespace

const OpDef& Op_gather() {
  static const OpDef* const op = Make({
      .name = "Gather",
      .doc = "slices of a table by index along one axis",
      .kind = OpKind::kIndex,
      .operands = {{.name = "table", .kind = OperandKind::kTable, .shape = "rank 1 or more", .own_dtype = true},
                   {.name = "indices", .kind = OperandKind::kIndex, .own_dtype = true}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{0}}},
      .infer = Infer,
      .map = Map,
      .identity = Identity,
      .reference = Reference,
      .pairs = SameOfPairs,
      .onnx = "Gather",
      .examples = {{{"f32[7, 3]", "i32[5]"}}},
  });
  return *op;
}

StatusOr<Value> MakePicked(const MakeNode& make, Value table, Value indices) {
  return make("Gather", {table, indices}, {{"axis", int64_t{0}}});
}

std::optional<Value> AllRowsOf(const Graph& graph, Value value) {
  const Node& node = graph.node(value.node);
  if (!PicksSlices(graph, node)) return std::nullopt;
  const Node& indices = graph.node(node.inputs[1].node);
  const Extent& rows = graph.type(node.inputs[0]).dims[0];
  if (indices.op->name != std::string_view("Iota") || indices.results[0].dims[0] != rows) return std::nullopt;
  return node.inputs[0];
}

bool PicksSlices(const Graph& graph, const Node& node) {
  return node.op == &Op_gather() && graph.type(node.inputs[1]).rank() == 1 &&
         FromStart(node.attributes.Int("axis"), graph.type(node.inputs[0]).dims.size()) == 0;
}

}  // namespace quern::ir
