// Expm1: e^x - 1, to the last places of results near 0.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_expm1() {
  static const OpDef* const op = Elementwise({
      .name = "Expm1",
      .doc = "e^x - 1, to the last places of results near 0",
      .body = [](Args a) { return Call(Op::kExpm1, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::expm1(x); },
  });
  return *op;
}

}  // namespace quern::ir
