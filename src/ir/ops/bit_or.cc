// BitOr: bitwise or.

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_bit_or() {
  static const OpDef* const op = Elementwise({
      .name = "BitOr",
      .doc = "bitwise or",
      .arity = 2,
      .domain = OperandKind::kIntegerOrBool,
      .body = [](Args a) { return Call(Op::kOr, {a[0], a[1]}); },
      .integer_reference = [](Wide a, Wide b, Wide) -> Wide { return a | b; },
      .onnx = "BitwiseOr",
  });
  return *op;
}

}  // namespace quern::ir
