// Atanh: inverse hyperbolic tangent.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;

const OpDef& Op_atanh() {
  static const OpDef* const op = Elementwise({
      .name = "Atanh",
      .doc = "inverse hyperbolic tangent; infinite at -1 and 1, NaN outside",
      .body =
          [](Args a) {
            // log1p(2 |x| / (1 - |x|)) / 2
            const kir::ExprRef size = Call(Op::kAbs, {a[0]});
            return Odd(a[0], Call(Op::kLog1p, {(size + size) / (1.0 - size)}) * 0.5);
          },
      .reference = [](double x, double, double) -> double { return std::atanh(x); },
      .onnx = "Atanh",
      .sample_low = -0.95,
      .sample_high = 0.95,
  });
  return *op;
}

}  // namespace quern::ir
