// Update: x with `update` written over the elements from `start` along one axis, or, with `index`, element r of the
// update along that axis at index[r]. An index that x does not have is dropped; of equal ones the last is what stays.
// When x is a donated input the result is x's own memory and only the update is written.

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
  if (context.operands.size() > 2) {
    const TensorType& index = context.operands[2];
    if (index.dtype != DType::kI32) return context.DTypeError(2, "i32");
    if (!context.Equal(index.dims, std::vector<Extent>{update.dims[axis]}))
      return context.ShapeError(2, ToString({update.dims[axis]}));
    if (start[0] != Extent(0)) return context.AttributeError("start", "0 beside an index");
    return std::vector<TensorType>{x};
  }
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
  const RefTensor* places = context.operands.size() > 2 ? context.operands[2] : nullptr;
  if (places == nullptr && start + update.dims[axis] > y.dims[axis]) {
    return absl::InvalidArgumentError(
        absl::StrFormat("Update: %d elements from %d do not lie in %d", update.dims[axis], start, y.dims[axis]));
  }
  const int64_t elements = update.elements();
  std::vector<int64_t> index(rank);
  for (int64_t from = 0; from < elements; ++from, NextIndex(update.dims, index)) {
    const int64_t place = places != nullptr ? static_cast<int64_t>(places->Integer(index[axis])) : index[axis] + start;
    if (place < 0 || place >= y.dims[axis]) continue;
    int64_t at = 0;
    for (int64_t d = 0; d < rank; ++d) at = at * y.dims[d] + (d == axis ? place : index[d]);
    y.Take(at, update, from);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_update() {
  static const OpDef* const op = Make({
      .name = "Update",
      .doc = "x with `update` written over the elements from `start` along one axis, or at those that `index` names",
      .kind = OpKind::kWrite,
      .family = "update",
      .operands =
          {{.name = "x", .shape = "rank 1 or more"},
           {.name = "update", .shape = "as x but for axis"},
           {.name = "index", .shape = "i32, as many as update has along axis", .optional = true, .own_dtype = true}},
      .attributes = {{.name = "axis", .kind = AttrKind::kInt},
                     {.name = "start",
                      .kind = AttrKind::kExtents,
                      .default_value = std::vector<Extent>{0},
                      .doc = "one extent; 0 beside an index"}},
      .infer = Infer,
      .reference = Reference,
      .examples = {{{"f32[5, 3]", "f32[2, 3]"}, {{"axis", int64_t{0}}, {"start", std::vector<Extent>{1}}}}},
  });
  return *op;
}

}  // namespace quern::ir
