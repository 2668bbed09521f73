// BitXor: bitwise exclusive or.

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_bit_xor() {
  static const OpDef* const op = Elementwise({
      .name = "BitXor",
      .doc = "bitwise exclusive or",
      .arity = 2,
      .domain = OperandKind::kIntegerOrBool,
      .body = [](Args a) { return Call(Op::kXor, {a[0], a[1]}); },
      .integer_reference = [](Wide a, Wide b, Wide) -> Wide { return a ^ b; },
      .onnx = "BitwiseXor",
  });
  return *op;
}

}  // namespace quern::ir
