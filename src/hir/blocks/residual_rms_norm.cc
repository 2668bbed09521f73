// ResidualRmsNorm{eps}: RmsNorm(x + residual), and the sum as a second result.

#include "hir/block.h"

namespace quern::hir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  QUERN_RETURN_IF_ERROR(c.ExpectRankAtLeast(0, 1));
  const TensorType& x = c.operand(0);
  QUERN_RETURN_IF_ERROR(c.ExpectDims(1, x.dims));
  QUERN_RETURN_IF_ERROR(c.ExpectDType(1, x.dtype));
  for (const int weight : {2, 3}) {
    QUERN_RETURN_IF_ERROR(c.ExpectDims(weight, {x.dims.back()}));
    QUERN_RETURN_IF_ERROR(c.ExpectDType(weight, x.dtype));
  }
  if (c.attributes.Float("eps") < 0) return c.AttributeError("eps", "0 or more");
  return std::vector<TensorType>{x, x};
}

StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  const Attributes eps = {{"eps", c.attributes().Float("eps")}};
  std::vector<ir::Value> operands = {c.inputs[0], c.inputs[1], c.inputs[2]};
  if (!c.IsNothing(c.inputs[3])) operands.push_back(c.inputs[3]);
  if (c.direct()) {
    const ir::Value norm = c.Add("FusedResidualRmsNorm", std::move(operands), eps);
    return c.Finish({norm, {norm.node, 1}});
  }
  const ir::Value sum = c.Add("Add", {operands[0], operands[1]});
  operands.erase(operands.begin());
  operands[0] = sum;
  return c.Finish({c.Add("RmsNorm", std::move(operands), eps), sum});
}

}  // namespace

const BlockDef& Block_residual_rms_norm() {
  static const BlockDef* const block = Make({
      .name = "ResidualRmsNorm",
      .doc = "RmsNorm(x + residual), and the sum",
      .label = "residual_rms_norm",
      .operands = {{.name = "x", .shape = "[.., N]"},
                   {.name = "residual", .shape = "as x"},
                   {.name = "gamma", .shape = "[N]"},
                   {.name = "beta", .optional = true, .shape = "[N]"}},
      .attributes = {{.name = "eps", .kind = ir::AttrKind::kFloat, .default_value = 1e-5}},
      .infer = Infer,
      .lower = Lower,
  });
  return *block;
}

}  // namespace quern::hir
