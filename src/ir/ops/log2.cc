// Log2: logarithm to base 2; -inf at 0, NaN below.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_log2() {
  static const OpDef* const op = Elementwise({
      .name = "Log2",
      .doc = "logarithm to base 2; -inf at 0, NaN below",
      .body = [](Args a) { return Call(Op::kLog2, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::log2(x); },
      .sample_low = 0.01,
      .sample_high = 8,
  });
  return *op;
}

}  // namespace quern::ir
