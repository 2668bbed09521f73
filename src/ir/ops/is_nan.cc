// IsNaN: whether x is not a number.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_is_nan() {
  static const OpDef* const op = Elementwise({
      .name = "IsNaN",
      .doc = "whether x is NaN",
      .body = [](Args a) { return Call(Op::kNe, {a[0], a[0]}); },
      .reference = [](double x, double, double) -> double { return std::isnan(x); },
      .result_dtype = DType::kBool,
      .onnx = "IsNaN",
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
