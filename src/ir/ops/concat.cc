// Concat: the operands one after another along one axis.

#include "ir/identity.h"
#include "ir/monotone.h"
#include "ir/pairs.h"
#include "ir/shape.h"
#include "ir/window.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;
using kir::Op;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  QUERN_ASSIGN(const int axis, AxisOf(context));
  for (size_t i = 1; i < context.operands.size(); ++i) {
    const TensorType& x = context.operands[i];
    bool fits = x.rank() == result.rank();
    for (int d = 0; fits && d < x.rank(); ++d) fits = d == axis || context.Equal(result.dims[d], x.dims[d]);
    if (!fits) {
      return context.ShapeError(static_cast<int>(i), absl::StrFormat("%s with any size in axis %d",
                                                                     ToString(context.operands[0].dims), axis));
    }
    result.dims[axis] = result.dims[axis] + x.dims[axis];
  }
  return std::vector<TensorType>{std::move(result)};
}

// A chain of selects: each operand is read where it is in range and as 0 elsewhere.
kir::ExprRef Map(MapContext& context) {
  namespace kb = kir::build;
  const int64_t axis = FromStart(context.node().attributes.Int("axis"), context.index().size());
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
  const int64_t axis = FromStart(node.attributes.Int("axis"), node.results[0].dims.size());
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
  const int64_t axis = FromStart(context.node.attributes.Int("axis"), y.dims.size());
  std::vector<int64_t> index(y.dims.size());
  const int64_t elements = y.elements();
  for (int64_t at = 0; at < elements; ++at, NextIndex(y.dims, index)) {
    std::vector<int64_t> place = index;
    size_t i = 0;
    while (place[axis] >= context.operands[i]->dims[axis]) place[axis] -= context.operands[i++]->dims[axis];
    y.Take(at, *context.operands[i], context.operands[i]->Offset(place));
  }
  return absl::OkStatus();
}

// The operand itself, if there is one. Of operands that were all turned, so that the rows of each would be read down
// its columns, what they were turned from is joined, row by row, and turned once.
Replacement Identity(const IdentityContext& context) {
  if (context.inputs.size() == 1) return context.inputs[0];
  std::vector<TurnedView> views;
  for (const Value& input : context.inputs) {
    std::optional<TurnedView> view = AsTurned(context.graph, input);
    if (!view || (!views.empty() && view->perm != views[0].perm)) return std::nullopt;
    views.push_back(*std::move(view));
  }
  const std::vector<int64_t>& perm = views[0].perm;
  if (perm.back() == static_cast<int64_t>(perm.size()) - 1) return std::nullopt;
  std::vector<Value> joined;
  for (const TurnedView& view : views) {
    QUERN_ASSIGN(const Value x, WithoutTurning(context.make, context.graph, view));
    joined.push_back(x);
  }
  const int64_t axis = perm[FromStart(context.node.attributes.Int("axis"), perm.size())];
  QUERN_ASSIGN(const Value all, context.make("Concat", std::move(joined), {{"axis", axis}}));
  return MakePermuted(context.make, all, perm);
}

}  // namespace

const OpDef& Op_concat() {
  static const OpDef* const op = Make({
      .name = "Concat",
      .doc = "the operands one after another along one axis",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x", .shape = "equal but for axis", .variadic = true}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt}},
      .infer = Infer,
      .map = Map,
      .pieces = Pieces,
      .channels_last = AxisChannelsLast,
      .identity = Identity,
      .reference = Reference,
      .pairs = SameOfPairs,
      .onnx = "Concat",
      .examples = {{{"f32[2, 3]", "f32[2, 5]"}, {{"axis", int64_t{1}}}}},
  });
  return *op;
}

bool IsConcat(const Node& node) { return node.op == &Op_concat(); }

}  // namespace quern::ir
