// GeluApprox: x/2 (1 + tanh(0.7978845608 (x + 0.044715 x^3))); not interchangeable with Gelu.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;

const OpDef& Op_gelu_approx() {
  static const OpDef* const op = Elementwise({
      .name = "GeluApprox",
      .doc = "x/2 (1 + tanh(0.7978845608 (x + 0.044715 x^3))); not interchangeable with Gelu",
      .body =
          [](Args a) {
            return a[0] * 0.5 * (Call(Op::kTanh, {(a[0] + a[0] * a[0] * a[0] * 0.044715) * 0.7978845608}) + 1.0);
          },
      .reference = [](double x, double, double) -> double {
        return x / 2 * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
      },
      .atol = 5e-7,  // 1 + tanh cancels below 0, where x / 2 of its places are lost
  });
  return *op;
}

}  // namespace quern::ir
