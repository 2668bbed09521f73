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
      .integer_reference = [](Wide a, Wide b, Wide) -> Wide { return a & b; },
      .onnx = "BitwiseAnd",
  });
  return *op;
}

}  // namespace quern::ir
