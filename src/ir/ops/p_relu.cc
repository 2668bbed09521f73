// PRelu: x from 0 on, slope x below.

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;
using kir::build::Select;

const OpDef& Op_p_relu() {
  static const OpDef* const op = Elementwise({
      .name = "PRelu",
      .doc = "a from 0 on, a b below",
      .arity = 2,
      .body = [](Args a) { return Select(Call(Op::kLt, {a[0], Like(a[0], 0)}), a[0] * a[1], a[0]); },
      .reference = [](double x, double slope, double) -> double { return x < 0 ? slope * x : x; },
      .onnx = "PRelu",
  });
  return *op;
}

}  // namespace quern::ir
