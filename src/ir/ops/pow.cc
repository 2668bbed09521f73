// Pow: a to the power b, as C99 pow.

#include <cmath>
#include <optional>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;

namespace {

// Few products where the power is a small whole number: each rounds once, which is within what Call(kPow) may be off.
// Where one of them leaves the range, so does the result.
kir::ExprRef Body(Args a) {
  const kir::ExprRef x = a[0];
  const std::optional<double> power = kir::KnownReal(a[1]);
  if (power == -1) return Like(x, 1) / x;
  if (power == 1) return x;
  if (power == 2) return x * x;
  if (power == 3) return x * x * x;
  if (power == 4) return (x * x) * (x * x);
  return Call(Op::kPow, {x, a[1]});
}

}  // namespace

const OpDef& Op_pow() {
  static const OpDef* const op = Elementwise({
      .name = "Pow",
      .doc = "a to the power b, as C99 pow",
      .arity = 2,
      .body = Body,
      .reference = [](double x, double y, double) -> double { return std::pow(x, y); },
      .rtol = 4e-6,
      .onnx = "Pow",
      .sample_low = 0.1,
      .sample_high = 4,
  });
  return *op;
}

}  // namespace quern::ir
