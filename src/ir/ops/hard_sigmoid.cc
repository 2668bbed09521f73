// HardSigmoid: clamp(x/6 + 1/2, 0, 1).

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
      .doc = "clamp(x/6 + 1/2, 0, 1)",
      .body =
          [](Args a) {
            return Call(Op::kMax, {Call(Op::kMin, {a[0] * (1.0 / 6) + 0.5, Like(a[0], 1)}), Like(a[0], 0)});
          },
      .reference = [](double x, double, double) -> double { return std::clamp(x / 6 + 0.5, 0.0, 1.0); },
      .atol = 2e-7,  // x / 6 + 1 / 2 cancels near -3
      .onnx = "HardSigmoid",
  });
  return *op;
}

}  // namespace quern::ir
