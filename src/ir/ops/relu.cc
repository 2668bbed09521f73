// Relu: max(x, 0); NaN stays NaN.

#include "ir/identity.h"
#include "ir/monotone.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_relu() {
  static const OpDef* const op = Elementwise({
      .name = "Relu",
      .doc = "max(x, 0); NaN stays NaN",
      .domain = OperandKind::kNumeric,
      .body = [](Args a) { return Call(Op::kMax, {a[0], Like(a[0], 0)}); },
      .reference = [](double x, double, double) -> double { return x < 0 ? 0 : x; },
      .integer_reference = [](Wide a, Wide, Wide) -> Wide { return a < 0 ? 0 : a; },
      .identity = Idempotent,
      .onnx = "Relu",
  });
  return *op;
}

bool IsRelu(const Node& node) { return node.op == &Op_relu(); }

}  // namespace quern::ir
