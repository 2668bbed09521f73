// Cosh: hyperbolic cosine.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;

const OpDef& Op_cosh() {
  static const OpDef* const op = Elementwise({
      .name = "Cosh",
      .doc = "hyperbolic cosine",
      .body =
          [](Args a) {
            // e^(|x| - 1) e / 2 + 1 / (2 e e^(|x| - 1)): it overflows where cosh does.
            const kir::ExprRef power = Call(Op::kExp, {Call(Op::kAbs, {a[0]}) - 1.0});
            return power * 1.3591409142295226 + 0.18393972058572117 / power;
          },
      .reference = [](double x, double, double) -> double { return std::cosh(x); },
      .onnx = "Cosh",
  });
  return *op;
}

}  // namespace quern::ir
