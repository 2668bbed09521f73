// Sqrt: square root; NaN below 0.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_sqrt() {
  static const OpDef* const op = Elementwise({
      .name = "Sqrt",
      .doc = "square root; NaN below 0",
      .body = [](Args a) { return Call(Op::kSqrt, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::sqrt(x); },
      .onnx = "Sqrt",
      .sample_low = 0,
      .sample_high = 8,
  });
  return *op;
}

}  // namespace quern::ir
