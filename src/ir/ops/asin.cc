// Asin: arc sine.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;

const OpDef& Op_asin() {
  static const OpDef* const op = Elementwise({
      .name = "Asin",
      .doc = "arc sine; NaN outside of -1 to 1",
      .body = [](Args a) { return Call(Op::kAtan2, {a[0], Call(Op::kSqrt, {(1.0 - a[0]) * (1.0 + a[0])})}); },
      .reference = [](double x, double, double) -> double { return std::asin(x); },
      .onnx = "Asin",
      .sample_low = -1,
      .sample_high = 1,
  });
  return *op;
}

}  // namespace quern::ir
