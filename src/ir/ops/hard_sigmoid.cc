// HardSigmoid: clamp(alpha x + beta, 0, 1); ONNX has another default for alpha, 0.2.

#include <algorithm>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;

const OpDef& Op_hard_sigmoid() {
  static const OpDef* const op = Elementwise({
      .name = "HardSigmoid",
      .doc = "clamp(alpha x + beta, 0, 1)",
      .attributes = {{.name = "alpha", .kind = AttrKind::kFloat, .default_value = 1.0 / 6},
                     {.name = "beta", .kind = AttrKind::kFloat, .default_value = 0.5}},
      .body_by =
          [](const Attributes& attributes, const kir::ExprRef& x) {
            const kir::ExprRef line = x * attributes.Float("alpha") + attributes.Float("beta");
            return Call(Op::kMax, {Call(Op::kMin, {line, Like(x, 1)}), Like(x, 0)});
          },
      .reference_by = [](const Attributes& attributes, double x) -> double {
        return std::clamp(attributes.Float("alpha") * x + attributes.Float("beta"), 0.0, 1.0);
      },
      .atol = 2e-7,  // the sum cancels near 0
      .onnx = "HardSigmoid",
  });
  return *op;
}

}  // namespace quern::ir
