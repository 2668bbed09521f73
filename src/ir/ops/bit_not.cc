// BitNot: bitwise complement.

#include "ir/identity.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_bit_not() {
  static const OpDef* const op = Elementwise({
      .name = "BitNot",
      .doc = "bitwise complement",
      .domain = OperandKind::kInteger,
      .body = [](Args a) { return Call(Op::kNot, {a[0]}); },
      .integer_reference = [](Wide a, Wide, Wide) -> Wide { return ~a; },
      .identity = Involution,
      .onnx = "BitwiseNot",
  });
  return *op;
}

}  // namespace quern::ir
