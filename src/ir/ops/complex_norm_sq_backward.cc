// ComplexNormSqBackward: the gradient of ComplexNormSq with respect to re and im, two reals, as one number.

#include "ir/pairs.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &z = context.operands[0], &g = context.operands[1];
  if (!IsComplex(z.dtype)) return context.DTypeError(0, "c64");
  if (g.dtype != DType::kF32) return context.DTypeError(1, "f32");
  if (!context.Equal(z.dims, g.dims)) return context.ShapeError(1, ToString(z.dims));
  return std::vector<TensorType>{z};
}

Status Reference(RefContext& context) {
  const RefTensor &z = *context.operands[0], &g = *context.operands[1];
  const int64_t elements = g.elements();
  for (int64_t at = 0; at < elements; ++at) context.results[0].SetComplex(at, 2 * g.data[at] * z.Complex(at));
  return absl::OkStatus();
}

StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  Expansion& e = context.e;
  std::vector<Extent> dims = context.types[1].dims;
  dims.emplace_back(1);
  const Value twice = e.Add("Mul", {e.Sized(context.x[1], std::move(dims)), e.Scalar(2, DType::kF32)});
  return e.Finish({e.Add("Mul", {context.x[0], twice})});
}

}  // namespace

const OpDef& Op_complex_norm_sq_backward() {
  static const OpDef* const op = Make({
      .name = "ComplexNormSqBackward",
      .doc = "2 g z: the gradient of re^2 + im^2",
      .kind = OpKind::kComposite,
      .operands = {{.name = "z", .shape = "c64", .own_dtype = true},
                   {.name = "g", .shape = "f32, of z's", .own_dtype = true}},
      .infer = Infer,
      .reference = Reference,
      .pairs = Pairs,
      .examples = {{{"c64[2, 3]", "f32[2, 3]"}}, {{"c64[S, 7]", "f32[S, 7]"}}},
  });
  return *op;
}

}  // namespace quern::ir
