// Exp: e^x.

#include <cmath>

#include "ir/op.h"
#include "ir/pairs.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

namespace {

// e^re (cos im, sin im); a real number stays one, whatever e^re is.
StatusOr<std::vector<Value>> Pairs(const PairsContext& context) {
  Expansion& e = context.e;
  const Parts z = PartsOf(e, context.x[0]);
  const Value size = e.Add("Exp", {z.re});
  const Value real = e.Add("Eq", {z.im, e.Scalar(0, DType::kF32)});
  const Value re = e.Add("Mul", {size, e.Add("Cos", {z.im})}), im = e.Add("Mul", {size, e.Add("Sin", {z.im})});
  return e.Finish({PairsOf(e, {re, e.Add("Where", {real, z.im, im})})});
}

}  // namespace

const OpDef& Op_exp() {
  static const OpDef* const op = Elementwise({
      .name = "Exp",
      .doc = "e^x",
      .body = [](Args a) { return Call(Op::kExp, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::exp(x); },
      .pairs = Pairs,
      .complex_reference = [](std::complex<double> z, std::complex<double>) -> std::complex<double> {
        const double size = std::exp(z.real());
        return {size * std::cos(z.imag()), z.imag() == 0 ? z.imag() : size * std::sin(z.imag())};
      },
      .onnx = "Exp",
  });
  return *op;
}

}  // namespace quern::ir
