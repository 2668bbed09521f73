// Softsign: x / (1 + |x|).

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;

const OpDef& Op_softsign() {
  static const OpDef* const op = Elementwise({
      .name = "Softsign",
      .doc = "x / (1 + |x|)",
      .body = [](Args a) { return a[0] / (Call(Op::kAbs, {a[0]}) + 1.0); },
      .reference = [](double x, double, double) -> double { return x / (1 + std::abs(x)); },
      .onnx = "Softsign",
  });
  return *op;
}

}  // namespace quern::ir
