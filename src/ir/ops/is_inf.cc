// IsInf: whether x is an infinity, of the signs asked for.

#include <cmath>

#include "ir/op.h"
#include "kir/build.h"

namespace quern::ir {

using kir::Op;
using kir::build::Call;

const OpDef& Op_is_inf() {
  static const OpDef* const op = Elementwise({
      .name = "IsInf",
      .doc = "whether x is an infinity",
      .attributes = {{.name = "positive", .kind = AttrKind::kBool, .default_value = true, .doc = "inf is one"},
                     {.name = "negative", .kind = AttrKind::kBool, .default_value = true, .doc = "-inf is one"}},
      .body_by =
          [](const Attributes& attributes, const kir::ExprRef& x) {
            const bool above = attributes.Bool("positive"), below = attributes.Bool("negative");
            if (!above && !below) return kir::build::Bool(false);
            const kir::ExprRef seen = above && below ? Call(Op::kAbs, {x}) : x;
            return Call(Op::kEq, {seen, Like(x, above ? INFINITY : -INFINITY)});
          },
      .reference_by = [](const Attributes& attributes, double x) -> double {
        return std::isinf(x) && attributes.Bool(x > 0 ? "positive" : "negative");
      },
      .result_dtype = DType::kBool,
      .onnx = "IsInf",
      .jumps = true,
  });
  return *op;
}

}  // namespace quern::ir
