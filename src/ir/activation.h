// Parts that the files of activations share.
#pragma once

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

// `usual`, which is x times something that is e^x for x far below 0; there, where that factor alone is subnormal (and
// so 0, since kernels flush) while the product is not, x e^x by way of a larger power.
inline kir::ExprRef ByExpWhereTiny(const kir::ExprRef& x, const kir::ExprRef& usual) {
  using namespace kir::build::operators;
  const bool wide = x->dtype == DType::kF64;
  const double far = wide ? -700 : -80, shift = -far / 2;
  const kir::ExprRef tiny = x * kir::build::Call(kir::Op::kExp, {x + shift}) * std::exp(-shift);
  return kir::build::Select(kir::build::Call(kir::Op::kLt, {x, Like(x, far)}), tiny, usual);
}

}  // namespace quern::ir
