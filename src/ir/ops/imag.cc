// Imag: the imaginary part of c64.

#include "ir/pairs.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  if (!IsComplex(context.operands[0].dtype)) return context.DTypeError(0, "c64");
  return std::vector<TensorType>{{DType::kF32, context.operands[0].dims}};
}

Status Reference(RefContext& context) {
  const RefTensor& z = *context.operands[0];
  RefTensor& y = context.results[0];
  for (size_t at = 0; at < y.data.size(); ++at) y.data[at] = z.Complex(static_cast<int64_t>(at)).imag();
  return absl::OkStatus();
}

StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  return context.e.Finish({PartsOf(context.e, context.x[0]).im});
}

}  // namespace

const OpDef& Op_imag() {
  static const OpDef* const op = Make({
      .name = "Imag",
      .doc = "the imaginary part",
      .kind = OpKind::kComposite,
      .operands = {{.name = "z", .shape = "c64"}},
      .infer = Infer,
      .reference = Reference,
      .pairs = Pairs,
      .rtol = 0,
      .examples = {{{"c64[2, 3]"}}, {{"c64[S, 7]"}}},
  });
  return *op;
}

}  // namespace quern::ir
