// QuickGelu: x / (1 + e^(-1.702 x)).

#include <cmath>

#include "ir/activation.h"
#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;

const OpDef& Op_quick_gelu() {
  static const OpDef* const op = Elementwise({
      .name = "QuickGelu",
      .doc = "x sigmoid(1.702 x)",
      .body = [](Args a) { return TimesSigmoid(a[0], a[0] * 1.702); },
      .reference = [](double x, double, double) -> double {
        const double power = std::exp(-1.702 * std::fabs(x));
        return x < 0 ? x * power / (1 + power) : x / (1 + power);
      },
      .rtol = 1.2e-5,  // e^(1.702 x) has the rounding of 1.702 x as often as 1.702 x is large, to 88
  });
  return *op;
}

}  // namespace quern::ir
