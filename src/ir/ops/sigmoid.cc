// Sigmoid: 1 / (1 + e^-x).

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_sigmoid() {
  static const OpDef* const op = Elementwise({
      .name = "Sigmoid",
      .doc = "1 / (1 + e^-x)",
      .body = [](Args a) { return Call(Op::kSigmoid, {a[0]}); },
      .reference = [](double x, double, double) -> double { return 1 / (1 + std::exp(-x)); },
      .onnx = "Sigmoid",
  });
  return *op;
}

}  // namespace quern::ir
