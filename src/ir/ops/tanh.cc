// Tanh: hyperbolic tangent.

#include <cmath>

#include "ir/op.h"
#include "ir/spelled_out.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_tanh() {
  static const OpDef* const op = Elementwise({
      .name = "Tanh",
      .doc = "hyperbolic tangent",
      .body = [](Args a) { return Call(Op::kTanh, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::tanh(x); },
      .onnx = "Tanh",
  });
  return *op;
}

bool IsTanh(const Node& node) { return node.op == &Op_tanh(); }

}  // namespace quern::ir
