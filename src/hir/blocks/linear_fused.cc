// LinearFused{act, weight_layout}: act(x W + b), always as the fused op under the Direct policy; b is always there.

#include "hir/linear.h"

namespace quern::hir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  QUERN_RETURN_IF_ERROR(CheckActivation(c));
  QUERN_RETURN_IF_ERROR(c.ExpectRankAtLeast(0, 2));
  std::optional<Extent> n;
  QUERN_RETURN_IF_ERROR(CheckWeight(c, 1, c.operand(0).dtype, c.operand(0).dims.back(), n));
  const TensorType result = ProductType(c.operand(0), c.operand(1), *n);
  QUERN_RETURN_IF_ERROR(c.ExpectDims(2, {*n}));
  QUERN_RETURN_IF_ERROR(c.ExpectDType(2, result.dtype));
  return std::vector<TensorType>{result};
}

// Under Fusable, Add puts the expansion in the fused op's place.
StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  return c.Finish({c.Add("FusedMatMulBiasAct", c.inputs,
                         {{"act", c.attributes().String("act")}, {"transpose_b", RowsOfK(c.attributes())}})});
}

}  // namespace

const BlockDef& Block_linear_fused() {
  static const BlockDef* const block = Make({
      .name = "LinearFused",
      .doc = "act(x W + b), always the fused op",
      .label = "linear_fused",
      .operands = {{.name = "x", .shape = "[.., M, K]"},
                   {.name = "w", .kind = ir::OperandKind::kWeight, .shape = "kn: [K, N]; nk: [N, K]"},
                   {.name = "b", .shape = "[N]"}},
      .attributes = {ActivationAttribute(), WeightLayoutAttribute()},
      .infer = Infer,
      .lower = Lower,
  });
  return *block;
}

}  // namespace quern::hir
