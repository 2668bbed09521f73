// ThresholdedRelu: x above alpha, else 0. NaN, which is not above it, stays NaN.

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;
using kir::build::Select;

const OpDef& Op_thresholded_relu() {
  static const OpDef* const op = Elementwise({
      .name = "ThresholdedRelu",
      .doc = "x above alpha, 0 elsewhere; NaN stays NaN",
      .attributes = {{.name = "alpha", .kind = AttrKind::kFloat, .default_value = 1.0}},
      .body_by =
          [](const Attributes& attributes, const kir::ExprRef& x) {
            return Select(Call(Op::kLe, {x, Like(x, attributes.Float("alpha"))}), Like(x, 0), x);
          },
      .reference_by = [](const Attributes& attributes, double x) -> double {
        return x <= attributes.Float("alpha") ? 0 : x;
      },
      .onnx = "ThresholdedRelu",
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
