// Div: a / b; integers truncate towards zero, and give 0 for a divisor of 0.

#include <cmath>

#include "ir/identity.h"
#include "ir/pairs.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
namespace {

kir::ExprRef Body(Args a) {
  if (IsFloat(a[0]->dtype)) return a[0] / a[1];
  const kir::ExprRef zero = Like(a[1], 0), is_zero = kir::build::Call(kir::Op::kEq, {a[1], zero});
  return kir::build::Select(is_zero, zero, a[0] / kir::build::Select(is_zero, Like(a[1], 1), a[1]));
}

}  // namespace

namespace {

// Smith: both parts of the divisor by the larger of them, so that no square leaves the range.
StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  Expansion& e = context.e;
  const Parts a = PartsOf(e, context.x[0]), b = PartsOf(e, context.x[1]);
  const auto op = [&](const char* name, Value x, Value y) { return e.Add(name, {x, y}); };
  const auto mul = [&](Value x, Value y) { return e.Add("Mul", {x, y}); };
  const Value wide = e.Add("Ge", {e.Add("Abs", {b.re}), e.Add("Abs", {b.im})});
  const auto pick = [&](Value x, Value y) { return e.Add("Where", {wide, x, y}); };
  const Value large = pick(b.re, b.im), small = pick(b.im, b.re);
  // A divisor of 0 divides: 0 / 0 would make NaN of what is infinite.
  const Value zero = e.Add("Eq", {large, e.Scalar(0, DType::kF32)});
  const Value ratio = e.Add("Where", {zero, e.Scalar(0, DType::kF32), op("Div", small, large)});
  const Value scale = op("Add", large, mul(small, ratio));
  const Value re = pick(op("Add", a.re, mul(a.im, ratio)), op("Add", mul(a.re, ratio), a.im));
  const Value im = pick(op("Sub", a.im, mul(a.re, ratio)), op("Sub", mul(a.im, ratio), a.re));
  return e.Finish({PairsOf(e, {op("Div", re, scale), op("Div", im, scale)})});
}

std::complex<double> Quotient(std::complex<double> a, std::complex<double> b) {
  if (std::fabs(b.real()) >= std::fabs(b.imag())) {
    const double ratio = b.real() == 0 ? 0 : b.imag() / b.real(), scale = b.real() + b.imag() * ratio;
    return {(a.real() + a.imag() * ratio) / scale, (a.imag() - a.real() * ratio) / scale};
  }
  const double ratio = b.real() / b.imag(), scale = b.imag() + b.real() * ratio;
  return {(a.real() * ratio + a.imag()) / scale, (a.imag() * ratio - a.real()) / scale};
}

}  // namespace

const OpDef& Op_div() {
  static const OpDef* const op = Elementwise({
      .name = "Div",
      .doc = "a / b; integers truncate towards zero, and give 0 for a divisor of 0",
      .arity = 2,
      .domain = OperandKind::kNumeric,
      .body = Body,
      .reference = [](double x, double y, double) -> double { return x / y; },
      .integer_reference = [](Wide a, Wide b, Wide) -> Wide { return b == 0 ? 0 : a / b; },
      .pairs = Pairs,
      .complex_reference = Quotient,
      .identity = [](const IdentityContext& c) { return Neutral(c, 1, /*commutes=*/false); },
      .onnx = "Div",
      .sample_low = 0.25,
      .sample_high = 4,
  });
  return *op;
}

}  // namespace quern::ir
