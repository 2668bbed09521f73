// Abs: |x|.

#include <cmath>

#include "ir/identity.h"
#include "ir/pairs.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

namespace {

// The larger part times sqrt(1 + ratio^2): no square leaves the range.
StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  Expansion& e = context.e;
  const Parts z = PartsOf(e, e.Add("Abs", {context.x[0]}));
  const Value zero = e.Scalar(0, DType::kF32), one = e.Scalar(1, DType::kF32);
  const Value large = e.Add("Max", {z.re, z.im}), small = e.Add("Min", {z.re, z.im});
  const Value ratio = e.Add("Div", {small, large});
  const Value root = e.Add("Sqrt", {e.Add("Add", {e.Add("Mul", {ratio, ratio}), one})});
  const Value size = e.Add("Where", {e.Add("Eq", {large, zero}), zero, e.Add("Mul", {large, root})});
  const auto is_inf = [&](Value x) { return e.Add("IsInf", {x}); };
  const Value infinite = e.Add("BitOr", {is_inf(z.re), is_inf(z.im)});
  return e.Finish({e.Add("Where", {infinite, e.Scalar(INFINITY, DType::kF32), size})});
}

}  // namespace

const OpDef& Op_abs() {
  static const OpDef* const op = Elementwise({
      .name = "Abs",
      .doc = "|x|; of c64 the f32 that is its distance from 0",
      .domain = OperandKind::kNumeric,
      .body = [](Args a) { return Call(Op::kAbs, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::abs(x); },
      .integer_reference = [](Wide a, Wide, Wide) -> Wide { return a < 0 ? -a : a; },
      .pairs = Pairs,
      .complex_reference = [](std::complex<double> z, std::complex<double>) -> std::complex<double> {
        return std::hypot(z.real(), z.imag());
      },
      .real = true,
      .identity = Idempotent,
      .onnx = "Abs",
  });
  return *op;
}

}  // namespace quern::ir
