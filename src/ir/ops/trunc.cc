// Trunc: the integer part.

#include <cmath>

#include "ir/identity.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_trunc() {
  static const OpDef* const op = Elementwise({
      .name = "Trunc",
      .doc = "the integer part, towards zero; integers are what they are",
      .domain = OperandKind::kNumeric,
      .body = [](Args a) { return IsFloat(a[0]->dtype) ? Call(Op::kTrunc, {a[0]}) : a[0]; },
      .reference = [](double x, double, double) -> double { return std::trunc(x); },
      .integer_reference = [](Wide a, Wide, Wide) -> Wide { return a; },
      .identity = Idempotent,
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
