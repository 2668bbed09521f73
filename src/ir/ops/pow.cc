// Pow: a to the power b, as C99 pow.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_pow() {
  static const OpDef* const op = Elementwise({
      .name = "Pow",
      .doc = "a to the power b, as C99 pow",
      .arity = 2,
      .body = [](Args a) { return Call(Op::kPow, {a[0], a[1]}); },
      .reference = [](double x, double y, double) -> double { return std::pow(x, y); },
      .rtol = 4e-6,
      .onnx = "Pow",
      .sample_low = 0.1,
      .sample_high = 4,
  });
  return *op;
}

}  // namespace quern::ir
