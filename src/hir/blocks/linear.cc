// Linear{act, bias, weight_layout}: act(x W + b). Direct with a bias: FusedMatMulBiasAct; else MatMul, Add, act.

#include "hir/linear.h"
#include "absl/strings/str_cat.h"

namespace quern::hir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  const bool wants_bias = c.attributes.Bool("bias");
  if (wants_bias && !c.has(2)) return c.Error(DiagnosticCode::kMissingBias, "b", "", "");
  if (!wants_bias && c.has(2)) return c.Error(DiagnosticCode::kInputCount, "", "2", "3");
  QUERN_RETURN_IF_ERROR(CheckActivation(c));
  QUERN_RETURN_IF_ERROR(c.ExpectRankAtLeast(0, 2));
  std::optional<Extent> n;
  QUERN_RETURN_IF_ERROR(CheckWeight(c, 1, c.operand(0).dtype, c.operand(0).dims.back(), n));
  const TensorType result = ProductType(c.operand(0), c.operand(1), *n);
  QUERN_RETURN_IF_ERROR(c.ExpectDims(2, {*n}));
  QUERN_RETURN_IF_ERROR(c.ExpectDType(2, result.dtype));
  return std::vector<TensorType>{result};
}

StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  const std::string& act = c.attributes().String("act");
  const bool bias = c.has(2) && !c.IsNothing(c.inputs[2]);
  if (bias && c.direct()) {
    return c.Finish({c.Add("FusedMatMulBiasAct", c.inputs, {{"act", act}, {"transpose_b", RowsOfK(c.attributes())}})});
  }
  ir::Value y = Product(c, c.inputs[0], c.inputs[1]);
  if (bias) y = c.Add("Add", {y, c.inputs[2]});
  if (!act.empty()) y = c.Add(act, {y});
  return c.Finish({y});
}

}  // namespace

const BlockDef& Block_linear() {
  static const BlockDef* const block = Make({
      .name = "Linear",
      .doc = "act(x W + b)",
      .label = "linear",
      .operands = {{.name = "x", .shape = "[.., M, K]"},
                   {.name = "w", .kind = ir::OperandKind::kWeight, .shape = "kn: [K, N]; nk: [N, K]"},
                   {.name = "b", .optional = true, .shape = "[N]"}},
      .attributes = {ActivationAttribute(),
                     {.name = "bias", .kind = ir::AttrKind::kBool, .default_value = false},
                     WeightLayoutAttribute()},
      .infer = Infer,
      .lower = Lower,
  });
  return *block;
}

}  // namespace quern::hir
