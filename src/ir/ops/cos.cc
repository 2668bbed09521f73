// Cos: cosine, radians.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_cos() {
  static const OpDef* const op = Elementwise({
      .name = "Cos",
      .doc = "cosine, radians",
      .body = [](Args a) { return Call(Op::kCos, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::cos(x); },
      .onnx = "Cos",
  });
  return *op;
}

}  // namespace quern::ir
