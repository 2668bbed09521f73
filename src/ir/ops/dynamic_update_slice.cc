// DynamicUpdateSlice: x with `update` written over the elements from `at` on, which is data. A start outside of 0 to
// the extent less the update's is the nearest of these. When x is a donated input the result is x's own memory and only
// the update is written.

#include <algorithm>

#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &update = context.operands[1];
  if (x.rank() < 1) return context.ShapeError(0, "rank 1 or more");
  bool fits = update.rank() == x.rank();
  for (int d = 0; fits && d < x.rank(); ++d) fits = context.AtLeast(x.dims[d], update.dims[d]);
  if (!fits) return context.ShapeError(1, absl::StrCat("no dimension longer than one of ", ToString(x.dims)));
  if (!context.Equal(context.operands[2].dims, std::vector<Extent>{x.rank()}))
    return context.ShapeError(2, absl::StrFormat("[%d]", x.rank()));
  return std::vector<TensorType>{x};
}

Status Reference(RefContext& context) {
  const RefTensor &update = *context.operands[1], &at = *context.operands[2];
  RefTensor& y = context.results[0];
  y.data = context.operands[0]->data;
  y.integers = context.operands[0]->integers;
  const int64_t elements = update.elements();
  std::vector<int64_t> index(y.dims.size());
  for (int64_t from = 0; from < elements; ++from, NextIndex(update.dims, index)) {
    std::vector<int64_t> place = index;
    for (size_t d = 0; d < place.size(); ++d) {
      const Wide most = y.dims[d] - update.dims[d];
      place[d] += static_cast<int64_t>(std::clamp<Wide>(at.Integer(static_cast<int64_t>(d)), 0, most));
    }
    y.Take(y.Offset(place), update, from);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_dynamic_update_slice() {
  static const OpDef* const op = Make({
      .name = "DynamicUpdateSlice",
      .doc = "x with `update` written over the elements from `at` on, moved inside where that reaches outside",
      .kind = OpKind::kWrite,
      .family = "update",
      .operands = {{.name = "x", .shape = "rank 1 or more"},
                   {.name = "update", .shape = "no dimension longer than one of x"},
                   {.name = "at", .kind = OperandKind::kIndex, .shape = "[rank of x]", .own_dtype = true}},
      .infer = Infer,
      .reference = Reference,
      .examples = {{{"f32[5, 11]", "f32[3, 7]", "i64[2]"}},
                   {{"i16[S, 7, 3]", "i16[1, 7, 3]", "i32[3]"}},
                   {{"bf16[7, 5]", "bf16[7, 2]", "i32[2]"}}},
  });
  return *op;
}

bool IsDynamicUpdate(const Node& node) { return node.op == &Op_dynamic_update_slice(); }

}  // namespace quern::ir
