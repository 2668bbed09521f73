#include "hir/linear.h"

#include "ir/product.h"

namespace quern::hir {

Status CheckWeight(const InferContext& context, int weight, DType x, const Extent& k, std::optional<Extent>& n) {
  const TensorType& w = context.operand(weight);
  const bool rows = RowsOfK(context.attributes);
  if (w.rank() != 2) return context.ShapeError(weight, rows ? "[N, K]" : "[K, N]");
  if (IsBlock(w.dtype) && !rows) {
    return context.Error(DiagnosticCode::kBadAttribute, "weight_layout", "\"nk\" for a block format", "\"kn\"");
  }
  if (!ir::Multiplies(x, w.dtype)) {
    return context.DTypeError(weight, absl::StrFormat("%s beside %s", ir::WeightsOf(x), std::string(Name(x))));
  }
  if (!n) n = w.dims[rows ? 0 : 1];
  return context.ExpectDims(weight, rows ? std::vector<Extent>{*n, k} : std::vector<Extent>{k, *n});
}

Status CheckActivation(const InferContext& context) {
  const std::string& act = context.attributes.String("act");
  if (act.empty()) return absl::OkStatus();
  if (ir::IsActivation(act)) return absl::OkStatus();
  return context.AttributeError("act", "an elementwise op of one operand");
}

TensorType ProductType(const TensorType& x, const TensorType& weight, const Extent& n) {
  TensorType result = x;
  result.dims.back() = n;
  if (IsBlock(weight.dtype)) result.dtype = DType::kF32;
  return result;
}

ir::Value Product(LowerContext& context, ir::Value x, ir::Value weight, std::string_view part) {
  return context.Add("MatMul", {x, weight}, {{"transpose_b", RowsOfK(context.attributes())}}, part);
}

}  // namespace quern::hir
