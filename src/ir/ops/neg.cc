// Neg: -x.

#include "ir/identity.h"
#include "ir/pairs.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;

const OpDef& Op_neg() {
  static const OpDef* const op = Elementwise({
      .name = "Neg",
      .doc = "-x",
      .domain = OperandKind::kNumeric,
      .body = [](Args a) { return -a[0]; },
      .reference = [](double x, double, double) -> double { return -x; },
      .integer_reference = [](Wide a, Wide, Wide) -> Wide { return -a; },
      .pairs = SameOfPairs,
      .complex_reference = [](std::complex<double> a, std::complex<double>) { return -a; },
      .identity = Involution,
      .onnx = "Neg",
  });
  return *op;
}

}  // namespace quern::ir
