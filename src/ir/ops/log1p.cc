// Log1p: log(1 + x), to the last places of results near 0; -inf at -1, NaN below.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_log1p() {
  static const OpDef* const op = Elementwise({
      .name = "Log1p",
      .doc = "log(1 + x), to the last places of results near 0; -inf at -1, NaN below",
      .body = [](Args a) { return Call(Op::kLog1p, {a[0]}); },
      .reference = [](double x, double, double) -> double { return std::log1p(x); },
      .sample_low = -0.9,
      .sample_high = 8,
  });
  return *op;
}

}  // namespace quern::ir
