// Atan2: angle of the point (b, a), as C99 atan2.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_atan2() {
  static const OpDef* const op = Elementwise({
      .name = "Atan2",
      .doc = "angle of the point (b, a), as C99 atan2",
      .arity = 2,
      .body = [](Args a) { return Call(Op::kAtan2, {a[0], a[1]}); },
      .reference = [](double x, double y, double) -> double { return std::atan2(x, y); },
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
