// Concat: the operands one after another along one axis.

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;
using kir::Op;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  QUERN_ASSIGN(const int axis, NormalAxis("Concat", context.attributes.Int("axis"), result.rank()));
  if (IsBlock(result.dtype)) return absl::InvalidArgumentError("Concat does not take block formats");
  for (size_t i = 1; i < context.operands.size(); ++i) {
    const TensorType& x = context.operands[i];
    bool fits = x.rank() == result.rank();
    for (int d = 0; fits && d < x.rank(); ++d) fits = d == axis || x.dims[d] == result.dims[d];
    if (!fits)
      return absl::InvalidArgumentError(absl::StrFormat("Concat: operand %u is %s, which does not fit %s along axis %d",
                                                        i, x.ToString(), context.operands[0].ToString(), axis));
    result.dims[axis] = result.dims[axis] + x.dims[axis];
  }
  return std::vector<TensorType>{std::move(result)};
}

int64_t Axis(const Attributes& attributes, size_t rank) {
  const int64_t axis = attributes.Int("axis");
  return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
}

// A chain of selects: each operand is read where it is in range and as 0 elsewhere.
kir::ExprRef Map(MapContext& context) {
  namespace kb = kir::build;
  const int64_t axis = Axis(context.node().attributes, context.index().size());
  const size_t count = context.node().inputs.size();
  kir::ExprRef value;
  Extent end = context.result_type().dims[axis];
  for (size_t i = count; i-- > 0;) {
    const Extent start = end - context.operand_type(static_cast<int>(i)).dims[axis];
    kir::Index at = context.index();
    at[axis] = at[axis] - kb::FromExtent(start);
    kir::ExprRef part = context.Operand(static_cast<int>(i), at, kb::CastTo(context.result_type().dtype, kb::Int(0)));
    value = value == nullptr ? part
                             : kb::Select(kb::Call(Op::kLt, {context.index()[axis], kb::FromExtent(end)}), part, value);
    end = start;
  }
  return value;
}

std::vector<Piece> Pieces(const Node& node, std::span<const TensorType> operands) {
  const int64_t axis = Axis(node.attributes, node.results[0].dims.size());
  std::vector<Piece> pieces;
  Extent start;
  for (int i = 0; i < static_cast<int>(operands.size()); ++i) {
    Piece& piece = pieces.emplace_back();
    for (const Extent& dim : node.results[0].dims) piece.ranges.emplace_back(0, dim);
    const Extent end = start + operands[i].dims[axis];
    piece.ranges[axis] = {start, end};
    piece.operand = i;
    start = end;
  }
  return pieces;
}

Status Reference(RefContext& context) {
  RefTensor& y = context.results[0];
  const int64_t axis = Axis(context.node.attributes, y.dims.size());
  std::vector<int64_t> index(y.dims.size());
  for (double& out : y.data) {
    std::vector<int64_t> at = index;
    size_t i = 0;
    while (at[axis] >= context.operands[i]->dims[axis]) at[axis] -= context.operands[i++]->dims[axis];
    out = context.operands[i]->At(at);
    NextIndex(y.dims, index);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_concat() {
  static const OpDef* const op = Make({
      .name = "Concat",
      .doc = "the operands one after another along one axis",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x", .variadic = true}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt}},
      .infer = Infer,
      .map = Map,
      .pieces = Pieces,
      .reference = Reference,
      .onnx = "Concat",
  });
  return *op;
}

}  // namespace quern::ir
