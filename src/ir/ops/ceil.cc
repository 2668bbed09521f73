// Ceil: smallest integer not below x.

#include <cmath>

#include "ir/identity.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_ceil() {
  static const OpDef* const op = Elementwise({
      .name = "Ceil",
      .doc = "smallest integer not below x",
      .body = [](Args a) { return Call(Op::kCeil, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::ceil(x); },
      .identity = Idempotent,
      .onnx = "Ceil",
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
