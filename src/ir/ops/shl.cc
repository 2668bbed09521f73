// Shl: a << b; 0 when b reaches the width.

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_shl() {
  static const OpDef* const op = Elementwise({
      .name = "Shl",
      .doc = "a << b; 0 when b reaches the width",
      .arity = 2,
      .domain = OperandKind::kInteger,
      .body = [](Args a) { return Call(Op::kShl, {a[0], a[1]}); },
      // What leaves the width is wrapped away.
      .integer_reference = [](Wide a, Wide b, Wide) -> Wide { return b < 0 || b >= 64 ? 0 : a << static_cast<int>(b); },
      .onnx = "BitShift",
      .sample_low = 0,
      .sample_high = 6,
  });
  return *op;
}

}  // namespace quern::ir
