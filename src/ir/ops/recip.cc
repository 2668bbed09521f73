// Recip: 1 / x.

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;

const OpDef& Op_recip() {
  static const OpDef* const op = Elementwise({
      .name = "Recip",
      .doc = "1 / x",
      .body = [](Args a) { return 1.0 / a[0]; },
      .reference = [](double x, double, double) -> double { return 1 / x; },
      .onnx = "Reciprocal",
      .sample_low = 0.1,
      .sample_high = 8,
  });
  return *op;
}

}  // namespace quern::ir
