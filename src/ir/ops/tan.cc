// Tan: tangent, radians.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_tan() {
  static const OpDef* const op = Elementwise({
      .name = "Tan",
      .doc = "tangent, radians",
      .body = [](Args a) { return Call(Op::kTan, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::tan(x); },
      .onnx = "Tan",
      .sample_low = -1.4,
      .sample_high = 1.4,
  });
  return *op;
}

}  // namespace quern::ir
