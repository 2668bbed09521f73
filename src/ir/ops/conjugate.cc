// Conjugate: re - i im.

#include "ir/pairs.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  if (!IsComplex(context.operands[0].dtype)) return context.DTypeError(0, "c64");
  return std::vector<TensorType>{context.operands[0]};
}

Status Reference(RefContext& context) {
  RefTensor& y = context.results[0];
  const int64_t elements = y.elements();
  for (int64_t at = 0; at < elements; ++at) y.SetComplex(at, std::conj(context.operands[0]->Complex(at)));
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_conjugate() {
  static const OpDef* const op = Make({
      .name = "Conjugate",
      .doc = "re - i im",
      .kind = OpKind::kComposite,
      .operands = {{.name = "z", .shape = "c64"}},
      .infer = Infer,
      .reference = Reference,
      .pairs =
          [](const PairsContext& c) {
            return c.e.Finish({c.e.Add("Mul", {c.x[0], c.e.Floats({1, -1}, DType::kF32)})});
          },
      .rtol = 0,
      .examples = {{{"c64[2, 3]"}}, {{"c64[S, 7]"}}},
  });
  return *op;
}

}  // namespace quern::ir
