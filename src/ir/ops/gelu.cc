// Gelu: x/2 (1 + erf(x / sqrt 2)).

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;

const OpDef& Op_gelu() {
  static const OpDef* const op = Elementwise({
      .name = "Gelu",
      .doc = "x/2 (1 + erf(x / sqrt 2))",
      .body = [](Args a) { return a[0] * 0.5 * (Call(Op::kErf, {a[0] * 0.70710678118654752}) + 1.0); },
      .reference = [](double x, double, double) -> double { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); },
      .atol = 5e-7,  // 1 + erf cancels below 0, where x / 2 of its places are lost
      .onnx = "Gelu",
  });
  return *op;
}

}  // namespace quern::ir
