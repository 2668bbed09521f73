// Min: the smaller; NaN when either is.

#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_min() {
  static const OpDef* const op = Elementwise({
      .name = "Min",
      .doc = "the smaller; NaN when either is",
      .arity = 2,
      .domain = OperandKind::kNumeric,
      .body = [](Args a) { return Call(Op::kMin, {a[0], a[1]}); },
      .reference = [](double x, double y, double) -> double {
        return std::isnan(x) || std::isnan(y) ? NAN : std::min(x, y);
      },
      .integer_reference = [](Wide a, Wide b, Wide) -> Wide { return b < a ? b : a; },
      .onnx = "Min",
  });
  return *op;
}

}  // namespace quern::ir
