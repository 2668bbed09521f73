// Clamp: min(max(x, low), high). A NaN in any operand is the result; where low is above high that is high.

#include <algorithm>
#include <cmath>

#include "ir/monotone.h"
#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_clamp() {
  static const OpDef* const op = Elementwise({
      .name = "Clamp",
      .doc = "min(max(a, b), c); NaN when any is",
      .arity = 3,
      .domain = OperandKind::kNumeric,
      .body = [](Args a) { return Call(Op::kMin, {Call(Op::kMax, {a[0], a[1]}), a[2]}); },
      .reference = [](double x, double low, double high) -> double {
        if (std::isnan(x) || std::isnan(low) || std::isnan(high)) return NAN;
        return std::min(std::max(x, low), high);
      },
      .integer_reference = [](Wide x, Wide low, Wide high) -> Wide { return std::min(std::max(x, low), high); },
      .onnx = "Clip",
  });
  return *op;
}

bool IsClamp(const Node& node) { return node.op == &Op_clamp(); }

}  // namespace quern::ir
