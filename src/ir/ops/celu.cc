// Celu: x from 0 on, alpha (e^(x / alpha) - 1) below.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;
using kir::build::Select;

const OpDef& Op_celu() {
  static const OpDef* const op = Elementwise({
      .name = "Celu",
      .doc = "x from 0 on, alpha (e^(x / alpha) - 1) below",
      .attributes = {{.name = "alpha", .kind = AttrKind::kFloat, .default_value = 1.0}},
      .body_by =
          [](const Attributes& attributes, const kir::ExprRef& x) {
            const double alpha = attributes.Float("alpha");
            const kir::ExprRef below = Call(Op::kExpm1, {x / alpha}) * alpha;
            return Select(Call(Op::kLt, {x, Like(x, 0)}), below, x);
          },
      .reference_by = [](const Attributes& attributes, double x) -> double {
        const double alpha = attributes.Float("alpha");
        return x < 0 ? alpha * std::expm1(x / alpha) : x;
      },
      .onnx = "Celu",
  });
  return *op;
}

}  // namespace quern::ir
