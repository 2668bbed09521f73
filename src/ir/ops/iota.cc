// Iota: the index along one axis, of every element.

#include "ir/shape.h"
#include "kir/build.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const std::vector<Extent>& shape = context.attributes.Extents("shape");
  const int64_t rank = static_cast<int64_t>(shape.size()), axis = context.attributes.Int("axis");
  bool fits = rank > 0;
  for (const Extent& extent : shape) fits = fits && context.AtLeast(extent, 0);
  if (!fits) return context.AttributeError("shape", "1 dimension or more, of 0 elements or more");
  if (axis < -rank || axis >= rank) return context.AttributeError("axis", absl::StrFormat("%d to %d", -rank, rank - 1));
  const DType dtype = context.attributes.Type("dtype");
  if (dtype != DType::kI32 && dtype != DType::kI64 && dtype != DType::kF32 && dtype != DType::kF64)
    return context.AttributeError("dtype", "i32, i64, f32 or f64");
  return std::vector<TensorType>{{dtype, shape}};
}

kir::ExprRef Map(MapContext& context) {
  const kir::Index& index = context.index();
  return kir::build::CastTo(context.result_type().dtype,
                            index[FromStart(context.node().attributes.Int("axis"), index.size())]);
}

Status Reference(RefContext& context) {
  RefTensor& y = context.results[0];
  const int64_t axis = FromStart(context.node.attributes.Int("axis"), y.dims.size()), elements = y.elements();
  std::vector<int64_t> index(y.dims.size());
  for (int64_t at = 0; at < elements; ++at, NextIndex(y.dims, index)) {
    if (IsInteger(y.dtype))
      y.SetInteger(at, index[axis]);
    else
      y.data[at] = static_cast<double>(index[axis]);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_iota() {
  static const OpDef* const op = Make({
      .name = "Iota",
      .doc = "the index along one axis, of every element",
      .kind = OpKind::kIndex,
      .attributes =
          {{.name = "shape", .kind = AttrKind::kExtents},
           {.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{0}},
           {.name = "dtype", .kind = AttrKind::kDType, .default_value = DType::kI64, .doc = "i32, i64, f32 or f64"}},
      .infer = Infer,
      .map = Map,
      .reference = Reference,
      .examples =
          {{{}, {{"shape", std::vector<Extent>{3, 5}}, {"axis", int64_t{1}}}},
           {{},
            {{"shape", std::vector<Extent>{Extent::Symbol("S"), 7}}, {"axis", int64_t{-2}}, {"dtype", DType::kF32}}},
           {{}, {{"shape", std::vector<Extent>{17}}, {"dtype", DType::kI32}}}},
  });
  return *op;
}

}  // namespace quern::ir
