// Fmod: remainder with the sign of the dividend; Mod has the divisor's.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;
using kir::build::Select;

namespace {

// Of positive numbers both remainders are one, and exact.
kir::ExprRef Body(Args a) {
  const kir::ExprRef &x = a[0], &y = a[1], zero = Like(x, 0);
  if (!IsFloat(x->dtype)) {
    const kir::ExprRef by_zero = Call(Op::kEq, {y, zero});
    return Select(by_zero, zero, x - x / Select(by_zero, Like(y, 1), y) * y);
  }
  const kir::ExprRef rest = Call(Op::kAbs, {x}) % Call(Op::kAbs, {y});
  const kir::ExprRef nothing = Call(Op::kAnd, {Call(Op::kEq, {rest, zero}), Call(Op::kEq, {x, zero})});
  return Select(nothing, x, Select(Call(Op::kLt, {x, zero}), -rest, rest));
}

}  // namespace

const OpDef& Op_fmod() {
  static const OpDef* const op = Elementwise({
      .name = "Fmod",
      .doc = "remainder with the sign of the dividend, as C99 fmod; integers give 0 for a divisor of 0",
      .arity = 2,
      .domain = OperandKind::kNumeric,
      .body = Body,
      .reference = [](double x, double y, double) -> double { return std::fmod(x, y); },
      .integer_reference = [](Wide a, Wide b, Wide) -> Wide { return b == 0 ? 0 : a % b; },
      .sample_low = 0.25,
      .sample_high = 4,
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
