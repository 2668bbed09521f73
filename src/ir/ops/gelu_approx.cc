// GeluApprox: x/2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))); not interchangeable with Gelu.

#include <cmath>

#include "ir/activation.h"
#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;

const OpDef& Op_gelu_approx() {
  static const OpDef* const op = Elementwise({
      .name = "GeluApprox",
      .doc = "x/2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))); not interchangeable with Gelu",
      .body =
          [](Args a) {
            // 1 + tanh(u) = 2 / (1 + e^-2u)
            return TimesSigmoid(a[0], a[0] * (a[0] * a[0] * (2 * kRootOfTwoOverPi * 0.044715) + 2 * kRootOfTwoOverPi));
          },
      .reference = [](double x, double, double) -> double {
        return x / 2 * (1 + std::tanh(kRootOfTwoOverPi * (x + 0.044715 * x * x * x)));
      },
      .atol = 1e-7,  // what rounding takes from the exponent counts as often as that is large
  });
  return *op;
}

}  // namespace quern::ir
