// Parts that the files of activations share.
#pragma once

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

// sqrt(2 / pi), of GeluApprox.
inline constexpr double kRootOfTwoOverPi = 0.79788456080286535588;

// x / (1 + e^-z). Far below 0, where the power would be infinite but x e^z is still a number, both sides of the
// quotient are taken e^-shift times.
inline kir::ExprRef TimesSigmoid(const kir::ExprRef& x, const kir::ExprRef& z) {
  using namespace kir::build::operators;
  using kir::build::Call;
  using kir::build::Select;
  const bool wide = z->dtype == DType::kF64;
  const double far = wide ? -700 : -80, shift = wide ? 64 : 32;
  const kir::ExprRef is_far = Call(kir::Op::kLt, {z, Like(z, far)});
  const kir::ExprRef power = Call(kir::Op::kExp, {Select(is_far, -shift - z, -z)});
  return Select(is_far, x * std::exp(-shift), x) / (power + 1.0);
}

}  // namespace quern::ir
