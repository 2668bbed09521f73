// Not: logical not of a bool.

#include "ir/identity.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_not() {
  static const OpDef* const op = Elementwise({
      .name = "Not",
      .doc = "logical not of a bool",
      .domain = OperandKind::kBool,
      .body = [](Args a) { return Call(Op::kNot, {a[0]}); },
      .reference = [](double x, double, double) -> double { return x == 0; },
      .identity = Involution,
      .onnx = "Not",
  });
  return *op;
}

StatusOr<Value> MakeNot(const MakeNode& make, Value x) { return make("Not", {x}, {}); }

}  // namespace quern::ir
