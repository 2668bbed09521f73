// Abs: |x|.

#include <cmath>

#include "ir/identity.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_abs() {
  static const OpDef* const op = Elementwise({
      .name = "Abs",
      .doc = "|x|",
      .domain = OperandKind::kNumeric,
      .body = [](Args a) { return Call(Op::kAbs, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::abs(x); },
      .integer_reference = [](Wide a, Wide, Wide) -> Wide { return a < 0 ? -a : a; },
      .identity = Idempotent,
      .onnx = "Abs",
  });
  return *op;
}

}  // namespace quern::ir
