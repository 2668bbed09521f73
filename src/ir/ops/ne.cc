// Ne: a != b.

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_ne() {
  static const OpDef* const op = Elementwise({
      .name = "Ne",
      .doc = "a != b",
      .arity = 2,
      .domain = OperandKind::kAny,
      .body = [](Args a) { return Call(Op::kNe, {a[0], a[1]}); },
      .reference = [](double x, double y, double) -> double { return x != y; },
      .integer_reference = [](Wide a, Wide b, Wide) -> Wide { return a != b; },
      .result_dtype = DType::kBool,
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
