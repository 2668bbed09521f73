// SwiGLU: ((x Wup) * silu(x Wgate)) Wdown; operands x, up, gate, down. Up comes before gate here.
//
// Direct: both products side by side and FusedSwiGLU over them. Fusable: five primitives.

#include "hir/linear.h"

namespace quern::hir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  QUERN_RETURN_IF_ERROR(c.ExpectRankAtLeast(0, 2));
  const TensorType& x = c.operand(0);
  std::optional<Extent> hidden, n;
  QUERN_RETURN_IF_ERROR(CheckWeight(c, 1, x.dtype, x.dims.back(), hidden));
  QUERN_RETURN_IF_ERROR(CheckWeight(c, 2, x.dtype, x.dims.back(), hidden));
  n = x.dims.back();
  QUERN_RETURN_IF_ERROR(CheckWeight(c, 3, x.dtype, *hidden, n));
  return std::vector<TensorType>{ProductType(ProductType(x, c.operand(1), *hidden), c.operand(3), *n)};
}

StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  const ir::Value up = Product(c, c.inputs[0], c.inputs[1], "up"), gate = Product(c, c.inputs[0], c.inputs[2], "gate");
  ir::Value hidden;
  if (c.direct()) {
    const ir::Value both = c.Add("Concat", {up, gate}, {{"axis", int64_t{-1}}});
    hidden = c.Add("FusedSwiGLU", {both}, {{"gate_first", false}});
  } else {
    hidden = c.Add("Mul", {up, c.Add("Silu", {gate})});
  }
  return c.Finish({Product(c, hidden, c.inputs[3], "down")});
}

}  // namespace

const BlockDef& Block_swi_glu() {
  static const BlockDef* const block = Make({
      .name = "SwiGLU",
      .doc = "((x Wup) * silu(x Wgate)) Wdown",
      .label = "swiglu_ffn",
      .operands = {{.name = "x", .shape = "[.., M, K]"},
                   {.name = "up", .kind = ir::OperandKind::kWeight, .shape = "kn: [K, N]; nk: [N, K]"},
                   {.name = "gate", .kind = ir::OperandKind::kWeight, .shape = "as up"},
                   {.name = "down", .kind = ir::OperandKind::kWeight, .shape = "kn: [N, K]; nk: [K, N]"}},
      .attributes = {WeightLayoutAttribute()},
      .infer = Infer,
      .lower = Lower,
  });
  return *block;
}

}  // namespace quern::hir
