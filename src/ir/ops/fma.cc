// Fma: a b + c, rounded once; of halves in f32.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_fma() {
  static const OpDef* const op = Elementwise({
      .name = "Fma",
      .doc = "a b + c, rounded once",
      .arity = 3,
      .body = [](Args a) { return Call(Op::kFma, {a[0], a[1], a[2]}); },
      .reference = [](double a, double b, double c) -> double { return std::fma(a, b, c); },
  });
  return *op;
}

}  // namespace quern::ir
