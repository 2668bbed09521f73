// Sign: -1, 0 or 1 by the sign of x; NaN stays NaN.

#include "ir/identity.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;

const OpDef& Op_sign() {
  static const OpDef* const op = Elementwise({
      .name = "Sign",
      .doc = "-1, 0 or 1 by the sign of x; NaN stays NaN",
      .domain = OperandKind::kNumeric,
      .body =
          [](Args a) {
            return Call(Op::kSelect, {Call(Op::kLt, {Like(a[0], 0), a[0]}), Like(a[0], 1),
                                      Call(Op::kSelect, {Call(Op::kLt, {a[0], Like(a[0], 0)}), -Like(a[0], 1), a[0]})});
          },
      .reference = [](double x, double, double) -> double { return x > 0   ? 1
                                                                   : x < 0 ? -1
                                                                           : x; },
      .integer_reference = [](Wide a, Wide, Wide) -> Wide { return a > 0   ? 1
                                                                   : a < 0 ? -1
                                                                           : 0; },
      .identity = Idempotent,
      .onnx = "Sign",
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
