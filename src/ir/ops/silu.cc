// Silu: x / (1 + e^-x), also called swish.

#include <cmath>

#include "ir/activation.h"
#include "ir/op.h"

namespace quern::ir {

const OpDef& Op_silu() {
  static const OpDef* const op = Elementwise({
      .name = "Silu",
      .doc = "x / (1 + e^-x), also called swish",
      .body = [](Args a) { return TimesSigmoid(a[0], a[0]); },
      .reference = [](double x, double, double) -> double {
        return x < 0 ? x * std::exp(x) / (1 + std::exp(x)) : x / (1 + std::exp(-x));
      },
  });
  return *op;
}

}  // namespace quern::ir
