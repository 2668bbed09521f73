// Sinh: hyperbolic sine.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;
using kir::build::Select;

namespace {

// Below 1 the Taylor series, to x^11 or x^19. Above it (e^|x| - e^-|x|) / 2 with e^(|x| - 1), which overflows where
// sinh does; |x| - 1 is exact there.
kir::ExprRef Body(Args a) {
  constexpr double kHalfE = 1.3591409142295226, kQuarterOfE = 0.18393972058572117;  // e / 2, 1 / 2e
  const kir::ExprRef &x = a[0], size = Call(Op::kAbs, {x}), square = x * x;
  const int last = x->dtype == DType::kF64 ? 19 : 11;
  kir::ExprRef series = Like(x, 1.0 / (last * (last - 1)));
  for (int n = last - 2; n >= 3; n -= 2) {
    series = kir::build::Contract(series * square + 1.0, a) * (1.0 / (n * (n - 1)));
  }
  const kir::ExprRef power = Call(Op::kExp, {size - 1.0}), large = power * kHalfE - kQuarterOfE / power;
  return Select(Call(Op::kLt, {size, Like(x, 1)}), kir::build::Contract(series * (square * x) + x, a), Odd(x, large));
}

}  // namespace

const OpDef& Op_sinh() {
  static const OpDef* const op = Elementwise({
      .name = "Sinh",
      .doc = "hyperbolic sine",
      .body = Body,
      .reference = [](double x, double, double) -> double { return std::sinh(x); },
      .onnx = "Sinh",
  });
  return *op;
}

}  // namespace quern::ir
