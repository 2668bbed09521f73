// Erf: the error function.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_erf() {
  static const OpDef* const op = Elementwise({
      .name = "Erf",
      .doc = "the error function",
      .body = [](Args a) { return Call(Op::kErf, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::erf(x); },
      .onnx = "Erf",
  });
  return *op;
}

}  // namespace quern::ir
