// Shr: a >> b, arithmetic for signed integers; the sign (or 0) when b reaches the width.

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_shr() {
  static const OpDef* const op = Elementwise({
      .name = "Shr",
      .doc = "a >> b, arithmetic for signed integers; the sign (or 0) when b reaches the width",
      .arity = 2,
      .domain = OperandKind::kInteger,
      .body = [](Args a) { return Call(Op::kShr, {a[0], a[1]}); },
      .integer_reference = [](Wide a, Wide b, Wide) -> Wide {
        return a >> (b < 0 || b >= 64 ? 64 : static_cast<int>(b));
      },
      .onnx = "BitShift",
      .sample_low = 0,
      .sample_high = 6,
  });
  return *op;
}

}  // namespace quern::ir
