// Exp2: 2^x.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_exp2() {
  static const OpDef* const op = Elementwise({
      .name = "Exp2",
      .doc = "2^x",
      .body = [](Args a) { return Call(Op::kExp2, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::exp2(x); },
  });
  return *op;
}

}  // namespace quern::ir
