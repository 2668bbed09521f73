// DynamicSlice: `sizes` elements of each dimension from `at` on, which is data. A start outside of 0 to the extent less
// the size is the nearest of these, so that nothing outside of x is read.

#include <algorithm>

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

using namespace kir::build::operators;

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &at = context.operands[1];
  const std::vector<Extent>& sizes = context.attributes.Extents("sizes");
  if (x.rank() < 1) return context.ShapeError(0, "rank 1 or more");
  if (!context.Equal(at.dims, std::vector<Extent>{x.rank()}))
    return context.ShapeError(1, absl::StrFormat("[%d]", x.rank()));
  bool fits = static_cast<int>(sizes.size()) == x.rank();
  for (int d = 0; fits && d < x.rank(); ++d)
    fits = context.AtLeast(sizes[d], 0) && context.AtLeast(x.dims[d], sizes[d]);
  if (!fits) return context.AttributeError("sizes", absl::StrCat("one for each dimension of ", ToString(x.dims)));
  return std::vector<TensorType>{{x.dtype, sizes}};
}

kir::ExprRef Map(MapContext& context) {
  kir::Index at = context.index();
  for (size_t d = 0; d < at.size(); ++d) {
    const Extent &whole = context.operand_type(0).dims[d], &size = context.result_type().dims[d];
    if (whole == size) continue;
    const kir::ExprRef start =
        kir::build::CastTo(DType::kI64, context.Operand(1, {kir::build::Int(static_cast<int64_t>(d))}));
    at[d] = at[d] + StartInside(start, whole, size);
  }
  return context.Operand(0, std::move(at));
}

Status Reference(RefContext& context) {
  const RefTensor &x = *context.operands[0], &at = *context.operands[1];
  RefTensor& y = context.results[0];
  MoveElements(x, y, [&](std::vector<int64_t>& index) {
    for (size_t d = 0; d < index.size(); ++d) {
      const Wide most = x.dims[d] - y.dims[d];
      index[d] += static_cast<int64_t>(std::clamp<Wide>(at.Integer(static_cast<int64_t>(d)), 0, most));
    }
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_dynamic_slice() {
  static const OpDef* const op = Make({
      .name = "DynamicSlice",
      .doc = "`sizes` elements of each dimension from `at` on, moved inside where that reaches outside",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x", .shape = "rank 1 or more"},
                   {.name = "at", .kind = OperandKind::kIndex, .shape = "[rank of x]", .own_dtype = true}},
      .attributes = {{.name = "sizes", .kind = AttrKind::kExtents, .doc = "by dimension"}},
      .infer = Infer,
      .map = Map,
      .reference = Reference,
      .examples = {{{"f32[5, 11]", "i64[2]"}, {{"sizes", std::vector<Extent>{3, 7}}}},
                   {{"i8[S, 7, 3]", "i32[3]"}, {{"sizes", std::vector<Extent>{1, 7, 2}}}}},
  });
  return *op;
}

}  // namespace quern::ir
