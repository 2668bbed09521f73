// ComplexNormSq: re^2 + im^2 of c64: no root, and no guard against overflow.

#include "ir/pairs.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

Status Reference(RefContext& context) {
  const RefTensor& z = *context.operands[0];
  RefTensor& y = context.results[0];
  for (size_t at = 0; at < y.data.size(); ++at) y.data[at] = std::norm(z.Complex(static_cast<int64_t>(at)));
  return absl::OkStatus();
}

StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  Expansion& e = context.e;
  const Value squares = e.Add("Mul", {context.x[0], context.x[0]});
  return e.Finish({e.Add("Reduce", {squares}, {{"op", std::string("sum")}, {"axes", std::vector<int64_t>{-1}}})});
}

}  // namespace

const OpDef& Op_complex_norm_sq() {
  static const OpDef* const op = Make({
      .name = "ComplexNormSq",
      .doc = "re^2 + im^2",
      .kind = OpKind::kComposite,
      .operands = {{.name = "z", .shape = "c64"}},
      .infer = InferRealOfComplex,
      .reference = Reference,
      .pairs = Pairs,
      .rtol = 1e-6,
      .examples = {{{"c64[2, 3]"}}, {{"c64[S, 7]"}}},
  });
  return *op;
}

}  // namespace quern::ir
