// Elu: x above 0, alpha (e^x - 1) below.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;

const OpDef& Op_elu() {
  static const OpDef* const op = Elementwise({
      .name = "Elu",
      .doc = "x above 0, alpha (e^x - 1) below",
      .attributes = {{.name = "alpha", .kind = AttrKind::kFloat, .default_value = 1.0}},
      .body_by =
          [](const Attributes& attributes, const kir::ExprRef& x) {
            const double alpha = attributes.Float("alpha");
            const kir::ExprRef power = Call(Op::kExpm1, {x});
            return Call(Op::kSelect, {Call(Op::kLt, {x, Like(x, 0)}), alpha == 1 ? power : power * alpha, x});
          },
      .reference_by = [](const Attributes& attributes, double x) -> double {
        return x < 0 ? attributes.Float("alpha") * std::expm1(x) : x;
      },
      .onnx = "Elu",
  });
  return *op;
}

}  // namespace quern::ir
