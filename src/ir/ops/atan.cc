// Atan: arc tangent.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_atan() {
  static const OpDef* const op = Elementwise({
      .name = "Atan",
      .doc = "arc tangent",
      .body = [](Args a) { return Call(Op::kAtan, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::atan(x); },
      .onnx = "Atan",
  });
  return *op;
}

}  // namespace quern::ir
