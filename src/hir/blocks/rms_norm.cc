// RmsNorm{eps}: x gamma / sqrt(mean(x^2) + eps) + beta over the last axis. An absent or all-zero beta costs nothing.

#include "hir/block.h"

namespace quern::hir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  QUERN_RETURN_IF_ERROR(c.ExpectRankAtLeast(0, 1));
  const TensorType& x = c.operand(0);
  for (const int weight : {1, 2}) {
    QUERN_RETURN_IF_ERROR(c.ExpectDims(weight, {x.dims.back()}));
    QUERN_RETURN_IF_ERROR(c.ExpectDType(weight, x.dtype));
  }
  if (c.attributes.Float("eps") < 0) return c.AttributeError("eps", "0 or more");
  return std::vector<TensorType>{x};
}

StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  std::vector<ir::Value> operands = {c.inputs[0], c.inputs[1]};
  if (!c.IsNothing(c.inputs[2])) operands.push_back(c.inputs[2]);
  return c.Finish({c.Add("RmsNorm", std::move(operands), {{"eps", c.attributes().Float("eps")}})});
}

}  // namespace

const BlockDef& Block_rms_norm() {
  static const BlockDef* const block = Make({
      .name = "RmsNorm",
      .doc = "x gamma / sqrt(mean(x^2) + eps) + beta over the last axis",
      .label = "rms_norm",
      .operands = {{.name = "x", .shape = "[.., N]"},
                   {.name = "gamma", .shape = "[N]"},
                   {.name = "beta", .optional = true, .shape = "[N]"}},
      .attributes = {{.name = "eps", .kind = ir::AttrKind::kFloat, .default_value = 1e-5}},
      .infer = Infer,
      .lower = Lower,
  });
  return *block;
}

}  // namespace quern::hir
