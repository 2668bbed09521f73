// Narrow: elements [start, start + length) along one axis. Both may be symbolic.

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  TensorType result = context.operands[0];
  QUERN_ASSIGN(const int axis, NormalAxis("Narrow", context.attributes.Int("axis"), result.rank()));
  const std::vector<Extent>&start = context.attributes.Extents("start"), &length = context.attributes.Extents("length");
  if (start.size() != 1 || length.size() != 1)
    return absl::InvalidArgumentError("Narrow: start and length are one extent each");
  // Refused here only when no values of the symbols fit; each binding is checked by whoever binds.
  const std::optional<int64_t> slack = (result.dims[axis] - start[0] - length[0]).UpperBound(context.symbols);
  const std::optional<int64_t> last = start[0].UpperBound(context.symbols);
  if ((last && *last < 0) || (slack && *slack < 0)) {
    return absl::InvalidArgumentError(absl::StrFormat("Narrow: %s elements from %s do not lie in %s",
                                                      length[0].ToString(), start[0].ToString(),
                                                      result.dims[axis].ToString()));
  }
  if (IsBlock(result.dtype) && axis == result.rank() - 1) {
    return absl::InvalidArgumentError("Narrow: the blocks of a row cannot be cut");
  }
  result.dims[axis] = length[0];
  return std::vector<TensorType>{std::move(result)};
}

kir::ExprRef Map(MapContext& context) {
  const Attributes& attributes = context.node().attributes;
  kir::Index at = context.index();
  const int64_t axis = attributes.Int("axis") + (attributes.Int("axis") < 0 ? static_cast<int64_t>(at.size()) : 0);
  at[axis] = at[axis] + kir::build::FromExtent(attributes.Extents("start")[0]);
  return context.Operand(0, std::move(at));
}

Status Reference(RefContext& context) {
  const Attributes& attributes = context.node.attributes;
  RefTensor& y = context.results[0];
  const int64_t axis = attributes.Int("axis") + (attributes.Int("axis") < 0 ? static_cast<int64_t>(y.dims.size()) : 0);
  const int64_t start = SizesOf(attributes.Extents("start"), context.binding)[0];
  if (start < 0 || start + y.dims[axis] > context.operands[0]->dims[axis]) {
    return absl::InvalidArgumentError(absl::StrFormat("Narrow: %d elements from %d do not lie in %d", y.dims[axis],
                                                      start, context.operands[0]->dims[axis]));
  }
  std::vector<int64_t> index(y.dims.size());
  for (double& out : y.data) {
    std::vector<int64_t> at = index;
    at[axis] += start;
    out = context.operands[0]->At(at);
    NextIndex(y.dims, index);
  }
  return absl::OkStatus();
}

// Rows cut off the front and the end lie where they were.
std::optional<Extent> View(const Node& node, const TensorType& x) {
  const int64_t axis = node.attributes.Int("axis") + (node.attributes.Int("axis") < 0 ? x.rank() : 0);
  Extent row(1);
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d < axis && x.dims[d] != Extent(1)) return std::nullopt;
    if (d > axis) row = row * x.dims[d];
  }
  return node.attributes.Extents("start")[0] * row;
}

}  // namespace

const OpDef& Op_narrow() {
  static const OpDef* const op = Make({
      .name = "Narrow",
      .doc = "elements [start, start + length) along one axis",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x"}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt},
                     {.name = "start", .kind = AttrKind::kExtents, .doc = "one extent"},
                     {.name = "length", .kind = AttrKind::kExtents, .doc = "one extent"}},
      .infer = Infer,
      .map = Map,
      .view = View,
      .reference = Reference,
  });
  return *op;
}

}  // namespace quern::ir
