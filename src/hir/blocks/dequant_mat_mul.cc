// DequantMatMul{scheme}: x [.., K] by a packed weight. Scheme "gguf": rows [N, K] of the block format that is the
// operand's dtype; blocks are decoded inside the product, never to memory. The other schemes are those of the op of the
// same name.

#include <algorithm>

#include "hir/linear.h"
#include "hir/op_block.h"
#include "ir/packed_weight.h"

namespace quern::hir {
namespace {

bool IsFileFormat(const Attributes& attributes) { return attributes.String("scheme") == "gguf"; }

StatusOr<std::vector<TensorType>> Infer(const InferContext& c) {
  const std::string& scheme = c.attributes.String("scheme");
  if (!IsFileFormat(c.attributes)) {
    const std::vector<const char*> known = ir::PackedSchemes();
    if (std::ranges::find(known, std::string_view(scheme)) != known.end()) return InferOpBlock(c);
    return c.Error(DiagnosticCode::kUnsupported, "scheme", "", "the scheme " + scheme);
  }
  if (c.has(2)) return c.Error(DiagnosticCode::kInputCount, c.block.operands[2].name, "2 operands", "more");
  if (!IsBlock(c.operand(1).dtype)) return c.DTypeError(1, "a block format");
  QUERN_RETURN_IF_ERROR(c.ExpectDType(0, DType::kF32));
  QUERN_RETURN_IF_ERROR(c.ExpectRankAtLeast(0, 2));
  const TensorType &x = c.operand(0), &w = c.operand(1);
  if (w.rank() != 2) return c.ShapeError(1, "[N, K]");
  QUERN_RETURN_IF_ERROR(c.ExpectDims(1, {w.dims[0], x.dims.back()}));
  return std::vector<TensorType>{ProductType(x, w, w.dims[0])};
}

StatusOr<std::vector<ir::Value>> Lower(LowerContext& c) {
  if (!IsFileFormat(c.attributes())) return LowerOpBlock(c, c.inputs);
  return c.Finish({c.Add("MatMul", {c.inputs[0], c.inputs[1]}, {{"transpose_b", true}})});
}

}  // namespace

const BlockDef& Block_dequant_mat_mul() {
  static const BlockDef* const block = [] {
    BlockDef def = OpBlock("DequantMatMul", "dequant_matmul");
    def.label_attribute = "scheme";
    def.operands[1] = {.name = "packed",
                       .kind = ir::OperandKind::kRightSide,
                       .shape = "gguf: blocks [N, K]; others: [K, N], or as many bytes as pairs of numbers"};
    for (ir::AttrDef& attribute : def.attributes) {
      if (std::string_view(attribute.name) != "scheme") continue;
      attribute.default_value = std::string("gguf");
      attribute.choices = {};  // a scheme that is none is refused by its name
    }
    def.infer = Infer;
    def.lower = Lower;
    return Make(std::move(def));
  }();
  return *block;
}

}  // namespace quern::hir
