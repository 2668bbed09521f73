// LeakyRelu: x from 0 on, alpha x below.

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;
using kir::build::Select;

const OpDef& Op_leaky_relu() {
  static const OpDef* const op = Elementwise({
      .name = "LeakyRelu",
      .doc = "x from 0 on, alpha x below",
      .attributes = {{.name = "alpha", .kind = AttrKind::kFloat, .default_value = 0.01}},
      .body_by =
          [](const Attributes& attributes, const kir::ExprRef& x) {
            return Select(Call(Op::kLt, {x, Like(x, 0)}), x * attributes.Float("alpha"), x);
          },
      .reference_by = [](const Attributes& attributes, double x) -> double {
        return x < 0 ? attributes.Float("alpha") * x : x;
      },
      .onnx = "LeakyRelu",
  });
  return *op;
}

}  // namespace quern::ir
