// Log: natural logarithm; -inf at 0, NaN below.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_log() {
  static const OpDef* const op = Elementwise({
      .name = "Log",
      .doc = "natural logarithm; -inf at 0, NaN below",
      .body = [](Args a) { return Call(Op::kLog, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::log(x); },
      .onnx = "Log",
      .sample_low = 0.01,
      .sample_high = 8,
  });
  return *op;
}

}  // namespace quern::ir
