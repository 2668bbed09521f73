// Add: a + b.

#include "ir/identity.h"
#include "ir/pairs.h"
#include "ir/spelled_out.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;

const OpDef& Op_add() {
  static const OpDef* const op = Elementwise({
      .name = "Add",
      .doc = "a + b",
      .arity = 2,
      .domain = OperandKind::kNumeric,
      .body = [](Args a) { return a[0] + a[1]; },
      .reference = [](double x, double y, double) -> double { return x + y; },
      .integer_reference = [](Wide a, Wide b, Wide) -> Wide { return a + b; },
      .pairs = SameOfPairs,
      .complex_reference = [](std::complex<double> a, std::complex<double> b) { return a + b; },
      .identity =
          [](const IdentityContext& c) {
            return Neutral(c, IsFloat(c.result().dtype) ? -0.0 : 0.0, /*commutes=*/true);
          },
      .onnx = "Add",
  });
  return *op;
}

bool IsSum(const Node& node) { return node.op == &Op_add(); }

}  // namespace quern::ir
