// Sin: sine, radians.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_sin() {
  static const OpDef* const op = Elementwise({
      .name = "Sin",
      .doc = "sine, radians",
      .body = [](Args a) { return Call(Op::kSin, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::sin(x); },
      .onnx = "Sin",
  });
  return *op;
}

}  // namespace quern::ir
