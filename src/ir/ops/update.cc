// Update: x with `update` written over the elements from `start` along one axis. When x is a donated input the result
// is x's own memory and only the update is written.

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &update = context.operands[1];
  QUERN_ASSIGN(const int axis, AxisOf(context));
  const std::vector<Extent>& start = context.attributes.Extents("start");
  if (start.size() != 1) return context.AttributeError("start", "one extent");
  bool fits = update.rank() == x.rank();
  for (int d = 0; fits && d < x.rank(); ++d) fits = d == axis || context.Equal(x.dims[d], update.dims[d]);
  if (!fits) return context.ShapeError(1, absl::StrFormat("%s with any size in axis %d", ToString(x.dims), axis));
  if (!context.AtLeast(start[0], 0)) return context.AttributeError("start", "0 or more");
  if (!context.AtLeast(x.dims[axis], start[0] + update.dims[axis])) {
    return context.AttributeError(
        "start", absl::StrFormat("room for %s elements in %s", update.dims[axis].ToString(), x.dims[axis].ToString()));
  }
  return std::vector<TensorType>{x};
}

Status Reference(RefContext& context) {
  const RefTensor& update = *context.operands[1];
  RefTensor& y = context.results[0];
  y.data = context.operands[0]->data;
  y.integers = context.operands[0]->integers;
  const int64_t rank = static_cast<int64_t>(y.dims.size());
  const int64_t axis = FromStart(context.node.attributes.Int("axis"), y.dims.size());
  const int64_t start = SizesOf(context.node.attributes.Extents("start"), context.binding)[0];
  if (start + update.dims[axis] > y.dims[axis]) {
    return absl::InvalidArgumentError(
        absl::StrFormat("Update: %d elements from %d do not lie in %d", update.dims[axis], start, y.dims[axis]));
  }
  const int64_t elements = update.elements();
  std::vector<int64_t> index(rank);
  for (int64_t from = 0; from < elements; ++from, NextIndex(update.dims, index)) {
    int64_t at = 0;
    for (int64_t d = 0; d < rank; ++d) at = at * y.dims[d] + index[d] + (d == axis ? start : 0);
    y.Take(at, update, from);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_update() {
  static const OpDef* const op = Make({
      .name = "Update",
      .doc = "x with `update` written over the elements from `start` along one axis",
      .kind = OpKind::kWrite,
      .family = "update",
      .operands = {{.name = "x", .shape = "rank 1 or more"}, {.name = "update", .shape = "as x but for axis"}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt},
                     {.name = "start", .kind = AttrKind::kExtents, .doc = "one extent"}},
      .infer = Infer,
      .reference = Reference,
  });
  return *op;
}

}  // namespace quern::ir
