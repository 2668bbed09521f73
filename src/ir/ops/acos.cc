// Acos: arc cosine.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;

const OpDef& Op_acos() {
  static const OpDef* const op = Elementwise({
      .name = "Acos",
      .doc = "arc cosine; NaN outside of -1 to 1",
      .body = [](Args a) { return Call(Op::kAtan2, {Call(Op::kSqrt, {(1.0 - a[0]) * (1.0 + a[0])}), a[0]}); },
      .reference = [](double x, double, double) -> double { return std::acos(x); },
      .onnx = "Acos",
      .sample_low = -1,
      .sample_high = 1,
  });
  return *op;
}

}  // namespace quern::ir
