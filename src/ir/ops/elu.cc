// Elu: x above 0, e^x - 1 below.

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
      .doc = "x above 0, e^x - 1 below",
      .body =
          [](Args a) {
            return Call(Op::kSelect, {Call(Op::kLt, {a[0], Like(a[0], 0)}), Call(Op::kExpm1, {a[0]}), a[0]});
          },
      .reference = [](double x, double, double) -> double { return x < 0 ? std::expm1(x) : x; },
      .onnx = "Elu",
  });
  return *op;
}

}  // namespace quern::ir
