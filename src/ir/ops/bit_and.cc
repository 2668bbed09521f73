// BitAnd: bitwise and.

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_bit_and() {
  static const OpDef* const op = Elementwise({
      .name = "BitAnd",
      .doc = "bitwise and",
      .arity = 2,
      .domain = OperandKind::kIntegerOrBool,
      .body = [](Args a) { return Call(Op::kAnd, {a[0], a[1]}); },
      .reference = [](double x, double y, double) -> double {
        return static_cast<double>(static_cast<int64_t>(x) & static_cast<int64_t>(y));
      },
      .onnx = "BitwiseAnd",
  });
  return *op;
}

}  // namespace quern::ir
