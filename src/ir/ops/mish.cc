// Mish: x tanh(softplus(x)).

#include <algorithm>
#include <cmath>

#include "ir/activation.h"
#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;

const OpDef& Op_mish() {
  static const OpDef* const op = Elementwise({
      .name = "Mish",
      .doc = "x tanh(softplus(x))",
      .body =
          [](Args a) {
            const kir::ExprRef softplus =
                Call(Op::kMax, {a[0], Like(a[0], 0)}) + Call(Op::kLog1p, {Call(Op::kExp, {-Call(Op::kAbs, {a[0]})})});
            return ByExpWhereTiny(a[0], a[0] * Call(Op::kTanh, {softplus}));
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
