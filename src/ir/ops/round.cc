// Round: to the nearest integer, half to even.

#include <cmath>

#include "ir/identity.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_round() {
  static const OpDef* const op = Elementwise({
      .name = "Round",
      .doc = "to the nearest integer, half to even",
      .body = [](Args a) { return Call(Op::kRound, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::nearbyint(x); },
      .identity = Idempotent,
      .onnx = "Round",
  });
  return *op;
}

}  // namespace quern::ir
