// Acosh: inverse hyperbolic cosine.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;
using kir::build::Select;

namespace {

// With t = x - 1, which is exact near 1: log1p(t + sqrt(t) sqrt(x + 1)); far out log1p(x) + log 2.
kir::ExprRef Body(Args a) {
  const kir::ExprRef &x = a[0], t = x - 1.0;
  const kir::ExprRef far = Call(Op::kLt, {Like(x, x->dtype == DType::kF64 ? 0x1p60 : 0x1p30), x});
  const kir::ExprRef near = t + Call(Op::kSqrt, {t}) * Call(Op::kSqrt, {x + 1.0});
  return Call(Op::kLog1p, {Select(far, x, near)}) + Select(far, Like(x, M_LN2), Like(x, 0));
}

}  // namespace

const OpDef& Op_acosh() {
  static const OpDef* const op = Elementwise({
      .name = "Acosh",
      .doc = "inverse hyperbolic cosine; NaN below 1",
      .body = Body,
      .reference = [](double x, double, double) -> double { return std::acosh(x); },
      .onnx = "Acosh",
      .sample_low = 1,
      .sample_high = 8,
  });
  return *op;
}

}  // namespace quern::ir
