// Mul: a b.

#include "ir/identity.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;

const OpDef& Op_mul() {
  static const OpDef* const op = Elementwise({
      .name = "Mul",
      .doc = "a b",
      .arity = 2,
      .domain = OperandKind::kNumeric,
      .body = [](Args a) { return a[0] * a[1]; },
      .reference = [](double x, double y, double) -> double { return x * y; },
      .integer_reference = [](Wide a, Wide b, Wide) -> Wide { return Times(a, b); },
      .identity = [](const IdentityContext& c) { return Neutral(c, 1, /*commutes=*/true); },
      .onnx = "Mul",
  });
  return *op;
}

}  // namespace quern::ir
