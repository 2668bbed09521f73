// Round: to the nearest integer, half to even.

#include <cmath>

#include "ir/identity.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_round() {
  static const OpDef* const op = Elementwise({
      .name = "Round",
      .doc = "to the nearest integer, half to even; integers are what they are",
      .domain = OperandKind::kNumeric,
      .body = [](Args a) { return IsFloat(a[0]->dtype) ? Call(Op::kRound, {a[0]}) : a[0]; },
      .reference = [](double x, double, double) -> double { return std::nearbyint(x); },
      .integer_reference = [](Wide a, Wide, Wide) -> Wide { return a; },
      .identity = Idempotent,
      .onnx = "Round",
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
