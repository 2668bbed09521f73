// Mod: remainder with the sign of the divisor; integers give 0 for a divisor of 0.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
namespace {

kir::ExprRef Body(Args a) {
  if (IsFloat(a[0]->dtype)) return a[0] % a[1];
  const kir::ExprRef zero = Like(a[1], 0), is_zero = kir::build::Call(kir::Op::kEq, {a[1], zero});
  return kir::build::Select(is_zero, zero, a[0] % kir::build::Select(is_zero, Like(a[1], 1), a[1]));
}

// Exact but for the sum, as fmod is.
double Remainder(double x, double y, double) {
  const double remainder = std::fmod(x, y);
  return remainder != 0 && (remainder < 0) != (y < 0) ? remainder + y : remainder;
}

Wide Modulo(Wide a, Wide b, Wide) {
  if (b == 0) return 0;
  const Wide remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

}  // namespace

const OpDef& Op_mod() {
  static const OpDef* const op = Elementwise({
      .name = "Mod",
      .doc = "remainder with the sign of the divisor; integers give 0 for a divisor of 0",
      .arity = 2,
      .domain = OperandKind::kNumeric,
      .body = Body,
      .reference = Remainder,
      .integer_reference = Modulo,
      .onnx = "Mod",
      .sample_low = 0.25,
      .sample_high = 4,
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
