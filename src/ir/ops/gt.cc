// Gt: a > b; false with a NaN.

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_gt() {
  static const OpDef* const op = Elementwise({
      .name = "Gt",
      .doc = "a > b; false with a NaN",
      .arity = 2,
      .domain = OperandKind::kNumeric,
      .body = [](Args a) { return Call(Op::kLt, {a[1], a[0]}); },
      .reference = [](double x, double y, double) -> double { return x > y; },
      .integer_reference = [](Wide a, Wide b, Wide) -> Wide { return a > b; },
      .result_dtype = DType::kBool,
      .onnx = "Greater",
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
