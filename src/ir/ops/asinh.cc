// Asinh: inverse hyperbolic sine.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;
using kir::build::Select;

namespace {

// log1p(|x| + x^2 / (1 + sqrt(1 + x^2))); far out, where x^2 overflows and 1 is nothing, log1p(|x|) + log 2.
kir::ExprRef Body(Args a) {
  const kir::ExprRef &x = a[0], size = Call(Op::kAbs, {x}), square = x * x;
  const kir::ExprRef far = Call(Op::kLt, {Like(x, x->dtype == DType::kF64 ? 0x1p60 : 0x1p30), size});
  const kir::ExprRef near = size + square / (Call(Op::kSqrt, {square + 1.0}) + 1.0);
  return Odd(x, Call(Op::kLog1p, {Select(far, size, near)}) + Select(far, Like(x, M_LN2), Like(x, 0)));
}

}  // namespace

const OpDef& Op_asinh() {
  static const OpDef* const op = Elementwise({
      .name = "Asinh",
      .doc = "inverse hyperbolic sine",
      .body = Body,
      .reference = [](double x, double, double) -> double { return std::asinh(x); },
      .onnx = "Asinh",
  });
  return *op;
}

}  // namespace quern::ir
