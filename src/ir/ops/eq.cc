// Eq: a == b.

#include "ir/op.h"
#include "ir/pairs.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

namespace {

StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  Expansion& e = context.e;
  const Parts parts = PartsOf(e, e.Add("Cast", {e.Add("Eq", {context.x[0], context.x[1]})}, {{"to", DType::kU8}}));
  return e.Finish({e.Stored(e.Add("BitAnd", {parts.re, parts.im}), DType::kBool)});
}

}  // namespace

const OpDef& Op_eq() {
  static const OpDef* const op = Elementwise({
      .name = "Eq",
      .doc = "a == b",
      .arity = 2,
      .domain = OperandKind::kAny,
      .body = [](Args a) { return Call(Op::kEq, {a[0], a[1]}); },
      .reference = [](double x, double y, double) -> double { return x == y; },
      .integer_reference = [](Wide a, Wide b, Wide) -> Wide { return a == b; },
      .pairs = Pairs,
      .complex_reference = [](std::complex<double> a, std::complex<double> b) -> std::complex<double> {
        return a == b ? 1 : 0;
      },
      .result_dtype = DType::kBool,
      .onnx = "Equal",
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
