// ReluBackward: dy where x is above 0, else 0, also where x is NaN.

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

const OpDef& Op_relu_backward() {
  static const OpDef* const op = Elementwise({
      .name = "ReluBackward",
      .doc = "b where a is above 0, else 0",
      .arity = 2,
      .body =
          [](Args a) {
            return kir::build::Select(kir::build::Call(kir::Op::kLt, {Like(a[0], 0), a[0]}), a[1], Like(a[1], 0));
          },
      .reference = [](double x, double dy, double) -> double { return x > 0 ? dy : 0; },
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
