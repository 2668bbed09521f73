// Exp: e^x.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_exp() {
  static const OpDef* const op = Elementwise({
      .name = "Exp",
      .doc = "e^x",
      .body = [](Args a) { return Call(Op::kExp, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::exp(x); },
      .onnx = "Exp",
  });
  return *op;
}

}  // namespace quern::ir
