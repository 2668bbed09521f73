// Rsqrt: 1 / sqrt(x).

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_rsqrt() {
  static const OpDef* const op = Elementwise({
      .name = "Rsqrt",
      .doc = "1 / sqrt(x)",
      .body = [](Args a) { return Call(Op::kRsqrt, {a[0]}); },
      .reference = [](double x, double, double) -> double { return 1 / std::sqrt(x); },
      .sample_low = 0.01,
      .sample_high = 8,
  });
  return *op;
}

}  // namespace quern::ir
