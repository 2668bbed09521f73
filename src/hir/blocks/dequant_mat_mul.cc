// DequantMatMul{scheme}: x [.., K] by a packed weight. Scheme "gguf": rows [N, K] of the block format that is the
// operand's dtype; blocks are decoded inside the product, never to memory.

#include "hir/linear.h"

namespace quern::hir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  if (c.attributes.String("scheme") != "gguf") {
    return c.Error(DiagnosticCode::kUnsupported, "scheme", "", "the scheme " + c.attributes.String("scheme"));
  }
  if (!IsBlock(c.operand(1).dtype)) return c.DTypeError(1, "a block format");
  QUERN_RETURN_IF_ERROR(c.ExpectDType(0, DType::kF32));
  QUERN_RETURN_IF_ERROR(c.ExpectRankAtLeast(0, 2));
  const TensorType &x = c.operand(0), &w = c.operand(1);
  if (w.rank() != 2) return c.ShapeError(1, "[N, K]");
  QUERN_RETURN_IF_ERROR(c.ExpectDims(1, {w.dims[0], x.dims.back()}));
  return std::vector<TensorType>{ProductType(x, w, w.dims[0])};
}

StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  return c.Finish({c.Add("MatMul", c.inputs, {{"transpose_b", true}})});
}

}  // namespace

const BlockDef& Block_dequant_mat_mul() {
  static const BlockDef* const block = Make({
      .name = "DequantMatMul",
      .doc = "x by a weight in a packed format",
      .label = "dequant_matmul",
      .operands = {{.name = "x", .shape = "[.., M, K]"},
                   {.name = "packed", .kind = ir::OperandKind::kWeight, .shape = "[N, K]"}},
      .attributes = {{.name = "scheme", .kind = ir::AttrKind::kString, .default_value = std::string("gguf")}},
      .infer = Infer,
      .lower = Lower,
  });
  return *block;
}

}  // namespace quern::hir
