// Div: a / b; integers truncate towards zero, and give 0 for a divisor of 0.

#include <cmath>

#include "ir/identity.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
namespace {

kir::ExprRef Body(Args a) {
  if (IsFloat(a[0]->dtype)) return a[0] / a[1];
  const kir::ExprRef zero = Like(a[1], 0), is_zero = kir::build::Call(kir::Op::kEq, {a[1], zero});
  return kir::build::Select(is_zero, zero, a[0] / kir::build::Select(is_zero, Like(a[1], 1), a[1]));
}

}  // namespace

const OpDef& Op_div() {
  static const OpDef* const op = Elementwise({
      .name = "Div",
      .doc = "a / b; integers truncate towards zero, and give 0 for a divisor of 0",
      .arity = 2,
      .domain = OperandKind::kNumeric,
      .body = Body,
      .reference = [](double x, double y, double) -> double { return x / y; },
      .integer_reference = [](Wide a, Wide b, Wide) -> Wide { return b == 0 ? 0 : a / b; },
      .identity = [](const IdentityContext& c) { return Neutral(c, 1, /*commutes=*/false); },
      .onnx = "Div",
      .sample_low = 0.25,
      .sample_high = 4,
  });
  return *op;
}

}  // namespace quern::ir
