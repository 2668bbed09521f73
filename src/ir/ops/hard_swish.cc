// HardSwish: x clamp(x/6 + 1/2, 0, 1).

#include <algorithm>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;

const OpDef& Op_hard_swish() {
  static const OpDef* const op = Elementwise({
      .name = "HardSwish",
      .doc = "x clamp(x/6 + 1/2, 0, 1)",
      .body =
          [](Args a) {
            return a[0] * Call(Op::kMax, {Call(Op::kMin, {a[0] * (1.0 / 6) + 0.5, Like(a[0], 1)}), Like(a[0], 0)});
          },
      .reference = [](double x, double, double) -> double { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); },
      .atol = 6e-7,  // x / 6 + 1 / 2 cancels near -3
      .onnx = "HardSwish",
  });
  return *op;
}

}  // namespace quern::ir
