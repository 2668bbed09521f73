// Mish: x tanh(softplus(x)).

#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;
using kir::build::Select;

const OpDef& Op_mish() {
  static const OpDef* const op = Elementwise({
      .name = "Mish",
      .doc = "x tanh(softplus(x))",
      .body =
          [](Args a) {
            // With e = e^-|x|, tanh(softplus(x)) is e (e + 2) / (e (e + 2) + 2) below 0, else
            // (1 + 2e) / (1 + 2e + 2e e).
            // Times the root of e twice: where e is subnormal (and so 0, since kernels flush) x e may not be.
            const kir::ExprRef& x = a[0];
            const kir::ExprRef root = Call(Op::kExp, {Call(Op::kAbs, {x}) * -0.5}), e = root * root, twice = e + e;
            const kir::ExprRef below = Call(Op::kLt, {x, Like(x, 0)}), more = e + 2.0, once = twice + 1.0;
            const kir::ExprRef shared[] = {e, twice, more, once};  // which the dividend has as they are
            return Select(below, x * root * (root * more), x * once) /
                   Select(below, kir::build::Contract(e * more + 2.0, shared),
                          kir::build::Contract(twice * e + once, shared));
          },
      .reference = [](double x, double, double) -> double {
        return x * std::tanh(std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))));
      },
      .rtol = 2e-6,
      .onnx = "Mish",
  });
  return *op;
}

}  // namespace quern::ir
