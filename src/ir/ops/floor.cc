// Floor: largest integer not above x.

#include <cmath>

#include "ir/identity.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_floor() {
  static const OpDef* const op = Elementwise({
      .name = "Floor",
      .doc = "largest integer not above x",
      .body = [](Args a) { return Call(Op::kFloor, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::floor(x); },
      .identity = Idempotent,
      .onnx = "Floor",
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
