// Softplus: log(1 + e^x), without overflow for large x.

#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;

const OpDef& Op_softplus() {
  static const OpDef* const op = Elementwise({
      .name = "Softplus",
      .doc = "log(1 + e^x), without overflow for large x",
      .body =
          [](Args a) {
            return Call(Op::kMax, {a[0], Like(a[0], 0)}) +
                   Call(Op::kLog1p, {Call(Op::kExp, {-Call(Op::kAbs, {a[0]})})});
          },
      .reference = [](double x, double, double) -> double {
        return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
      },
      .rtol = 2e-6,
      .onnx = "Softplus",
  });
  return *op;
}

}  // namespace quern::ir
