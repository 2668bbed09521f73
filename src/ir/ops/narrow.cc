// Narrow: elements [start, start + length) along one axis. Both may be symbolic.

#include "ir/identity.h"
#include "ir/pairs.h"
#include "ir/shape.h"
#include "ir/window.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  QUERN_ASSIGN(const int axis, AxisOf(context));
  const std::vector<Extent>&start = context.attributes.Extents("start"), &length = context.attributes.Extents("length");
  if (start.size() != 1) return context.AttributeError("start", "one extent");
  if (length.size() != 1) return context.AttributeError("length", "one extent");
  if (!context.AtLeast(start[0], 0)) return context.AttributeError("start", "0 or more");
  if (!context.AtLeast(length[0], 0)) return context.AttributeError("length", "0 or more");
  if (!context.AtLeast(result.dims[axis], start[0] + length[0])) {
    return context.AttributeError(
        "length", absl::StrFormat("at most the %s elements from %s on", (result.dims[axis] - start[0]).ToString(),
                                  start[0].ToString()));
  }
  result.dims[axis] = length[0];
  return std::vector<TensorType>{std::move(result)};
}

kir::ExprRef Map(MapContext& context) {
  const Attributes& attributes = context.node().attributes;
  kir::Index at = context.index();
  const int64_t axis = FromStart(attributes.Int("axis"), at.size());
  at[axis] = at[axis] + kir::build::FromExtent(attributes.Extents("start")[0]);
  return context.Operand(0, std::move(at));
}

Status Reference(RefContext& context) {
  const Attributes& attributes = context.node.attributes;
  RefTensor& y = context.results[0];
  const int64_t axis = FromStart(attributes.Int("axis"), y.dims.size());
  const int64_t start = SizesOf(attributes.Extents("start"), context.binding)[0];
  if (start < 0 || start + y.dims[axis] > context.operands[0]->dims[axis]) {
    return absl::InvalidArgumentError(absl::StrFormat("Narrow: %d elements from %d do not lie in %d", y.dims[axis],
                                                      start, context.operands[0]->dims[axis]));
  }
  MoveElements(*context.operands[0], y, [&](std::vector<int64_t>& index) { index[axis] += start; });
  return absl::OkStatus();
}

std::optional<Strides> Steps(const Node& node, const Strides& x) {
  const int64_t axis = FromStart(node.attributes.Int("axis"), x.dims.size());
  return Strides{node.results[0].dims, x.steps, x.offset + node.attributes.Extents("start")[0] * x.steps[axis]};
}

// The part of a part, and the part of one operand of a Concat read back.
Replacement Identity(const IdentityContext& context) {
  if (context.type(0) == context.result()) return context.inputs[0];
  const size_t rank = context.result().dims.size();
  const auto axis_of = [&](const Node& node) { return FromStart(node.attributes.Int("axis"), rank); };
  const int64_t axis = axis_of(context.node);
  const Extent start = context.node.attributes.Extents("start")[0];
  const Extent length = context.node.attributes.Extents("length")[0];
  const auto part = [&](Value x, const Extent& from) {
    return context.make(
        "Narrow", {x}, {{"axis", axis}, {"start", std::vector<Extent>{from}}, {"length", std::vector<Extent>{length}}});
  };
  const Node& behind = context.behind(0);
  if (behind.op == context.node.op && axis_of(behind) == axis) {
    return part(behind.inputs[0], behind.attributes.Extents("start")[0] + start);
  }
  if (behind.op->name != std::string_view("Concat") || axis_of(behind) != axis) return std::nullopt;
  Extent offset(0);
  for (const Value& operand : behind.inputs) {
    const Extent size = context.graph.type(operand).dims[axis], inside = start - offset;
    const SymbolRanges& ranges = context.graph.symbols;
    if (inside == Extent(0) && size == length) return operand;
    if (inside.ProvablyAtLeast(Extent(0), ranges) && size.ProvablyAtLeast(inside + length, ranges)) {
      return part(operand, inside);
    }
    offset = offset + size;
  }
  return std::nullopt;
}

}  // namespace

const OpDef& Op_narrow() {
  static const OpDef* const op = Make({
      .name = "Narrow",
      .doc = "elements [start, start + length) along one axis",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x", .shape = "rank 1 or more"}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt},
                     {.name = "start", .kind = AttrKind::kExtents, .doc = "one extent"},
                     {.name = "length", .kind = AttrKind::kExtents, .doc = "one extent"}},
      .infer = Infer,
      .map = Map,
      .strides = Steps,
      .channels_last = AxisChannelsLast,
      .identity = Identity,
      .reference = Reference,
      .pairs = SameOfPairs,
      .examples = {{{"f32[2, 5]"},
                    {{"axis", int64_t{1}}, {"start", std::vector<Extent>{1}}, {"length", std::vector<Extent>{3}}}}},
  });
  return *op;
}

}  // namespace quern::ir
