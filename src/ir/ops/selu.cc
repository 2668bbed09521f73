// Selu: the exponential linear unit of networks that normalise themselves (Klambauer et al., 2017).

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using namespace kir::build::operators;
using kir::Op;
using kir::build::Call;
using kir::build::Select;

namespace {

constexpr double kScale = 1.0507009873554804934193349852946, kAlpha = 1.6732632423543772848170429916717;

}  // namespace

const OpDef& Op_selu() {
  static const OpDef* const op = Elementwise({
      .name = "Selu",
      .doc = "1.0507 x from 0 on, 1.0507 * 1.67326 (e^x - 1) below",
      .body =
          [](Args a) {
            const kir::ExprRef &x = a[0], power = Call(Op::kExpm1, {x});
            return Select(Call(Op::kLt, {x, Like(x, 0)}), power * (kScale * kAlpha), x * kScale);
          },
      .reference = [](double x, double, double) -> double {
        return 1.0507009873554804934193349852946 * (x < 0 ? 1.6732632423543772848170429916717 * std::expm1(x) : x);
      },
      .onnx = "Selu",
  });
  return *op;
}

}  // namespace quern::ir
