// StopGradient: x. What follows from it is no matter of gradients.

#include "ir/identity.h"
#include "ir/pairs.h"
#include "kir/build.h"

namespace quern::ir {

const OpDef& Op_stop_gradient() {
  static const OpDef* const op = Elementwise({
      .name = "StopGradient",
      .doc = "x, of which gradients are 0",
      .domain = OperandKind::kAny,
      .body = [](Args a) { return a[0]; },
      .reference = [](double x, double, double) -> double { return x; },
      .integer_reference = [](Wide x, Wide, Wide) -> Wide { return x; },
      .pairs = SameOfPairs,
      .complex_reference = [](std::complex<double> a, std::complex<double>) { return a; },
      .identity = Unchanged,
  });
  return *op;
}

}  // namespace quern::ir
