// GatherND: slices of x at places of several dimensions. The last dimension of `indices` holds an index for each
// dimension of x behind `batch_dims`, as many as there are; the first `batch_dims` of both go side by side. Indices
// count and clamp as Gather's do.
//
//   x [b.., d.., r..], indices [b.., p.., m] -> [b.., p.., r..], of m dimensions d

#include <algorithm>

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &x = context.operands[0], &indices = context.operands[1];
  const int64_t batch = context.attributes.Int("batch_dims");
  if (x.rank() < 1) return context.ShapeError(0, "rank 1 or more");
  if (indices.rank() < 1 || !indices.dims.back().is_constant()) return context.ShapeError(1, "[.., a number]");
  if (batch < 0 || batch >= std::min(x.rank(), indices.rank()))
    return context.AttributeError("batch_dims", absl::StrFormat("0 to %d", std::min(x.rank(), indices.rank()) - 1));
  const int64_t depth = indices.dims.back().constant();
  if (depth < 1 || batch + depth > x.rank())
    return context.ShapeError(1, absl::StrFormat("[.., 1 to %d]", x.rank() - batch));
  for (int64_t d = 0; d < batch; ++d) {
    if (!context.Equal(indices.dims[d], x.dims[d]))
      return context.ShapeError(1, absl::StrFormat("%s first", x.dims[d].ToString()));
  }
  for (int64_t d = batch; d < batch + depth; ++d) {
    if (!context.AtLeast(x.dims[d], 1))
      return context.ShapeError(0, absl::StrFormat("1 element or more along axis %d", d));
  }
  TensorType result{x.dtype, {indices.dims.begin(), indices.dims.end() - 1}};
  result.dims.insert(result.dims.end(), x.dims.begin() + batch + depth, x.dims.end());
  return std::vector<TensorType>{std::move(result)};
}

kir::ExprRef Map(MapContext& context) {
  namespace kb = kir::build;
  const TensorType &x = context.operand_type(0), &indices = context.operand_type(1);
  const int64_t batch = context.node().attributes.Int("batch_dims"), depth = indices.dims.back().constant(),
                places = indices.rank() - 1;
  const kir::Index& index = context.index();
  kir::Index at(index.begin(), index.begin() + batch);
  for (int64_t d = 0; d < depth; ++d) {
    kir::Index which(index.begin(), index.begin() + places);
    which.push_back(kb::Int(d));
    at.push_back(
        IndexInside(kb::CastTo(DType::kI64, context.Operand(1, std::move(which))), kb::FromExtent(x.dims[batch + d])));
  }
  at.insert(at.end(), index.begin() + places, index.end());
  return context.Operand(0, std::move(at));
}

Status Reference(RefContext& context) {
  const RefTensor &x = *context.operands[0], &indices = *context.operands[1];
  const int64_t batch = context.node.attributes.Int("batch_dims"), depth = indices.dims.back();
  const auto places = static_cast<int64_t>(indices.dims.size()) - 1;
  MoveElements(x, context.results[0], [&](std::vector<int64_t>& index) {
    std::vector<int64_t> which(index.begin(), index.begin() + places), at(index.begin(), index.begin() + batch);
    which.push_back(0);
    const int64_t first = indices.Offset(which);
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t size = x.dims[batch + d];
      Wide id = indices.Integer(first + d);
      if (id < 0) id += size;
      at.push_back(static_cast<int64_t>(std::clamp<Wide>(id, 0, size - 1)));
    }
    at.insert(at.end(), index.begin() + places, index.end());
    index = std::move(at);
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_gather_nd() {
  static const OpDef* const op = Make({
      .name = "GatherND",
      .doc = "slices of x at places of several dimensions",
      .kind = OpKind::kIndex,
      .operands =
          {{.name = "x", .shape = "rank 1 or more"},
           {.name = "indices", .kind = OperandKind::kIndex, .shape = "[.., dimensions of a place]", .own_dtype = true}},
      .attributes = {{.name = "batch_dims",
                      .kind = AttrKind::kInt,
                      .default_value = int64_t{0},
                      .doc = "first dimensions that both have"}},
      .infer = Infer,
      .map = Map,
      .reference = Reference,
      .onnx = "GatherND",
      .examples = {{{"f32[3, 5, 2]", "i64[7, 2]"}},
                   {{"f32[3, 5, 2]", "i64[7, 3]"}},
                   {{"i32[S, 5, 3]", "i32[S, 2, 1]"}, {{"batch_dims", int64_t{1}}}}},
  });
  return *op;
}

}  // namespace quern::ir
