// What the blocks that multiply by weights share: the weight's layout, its checks, the product.
#pragma once

#include <string>

#include "hir/block.h"

namespace quern::hir {

// "kn": W [K, N], y = x W. "nk": rows [N, K] as in GGUF files, of any float or block dtype.
inline ir::AttrDef WeightLayoutAttribute() {
  return {.name = "weight_layout",
          .kind = ir::AttrKind::kString,
          .default_value = std::string("kn"),
          .doc = "kn: [K, N]; nk: [N, K]",
          .choices = {"kn", "nk"}};
}
// The name of an elementwise MIR op of one operand, or empty.
inline ir::AttrDef ActivationAttribute() {
  return {.name = "act",
          .kind = ir::AttrKind::kString,
          .default_value = std::string(),
          .doc = "name of an elementwise op, or empty"};
}

inline bool RowsOfK(const Attributes& attributes) { return attributes.String("weight_layout") == "nk"; }

// Checks weight operand `weight` for a product with activations of dtype `x` and extent `k`; `n` is checked too, or set
// when null was stored there.
Status CheckWeight(const InferContext& context, int weight, DType x, const Extent& k, std::optional<Extent>& n);
Status CheckActivation(const InferContext& context);
// The type of x W.
TensorType ProductType(const TensorType& x, const TensorType& weight, const Extent& n);

// x W as one MIR node.
ir::Value Product(LowerContext& context, ir::Value x, ir::Value weight, std::string_view part = "");

}  // namespace quern::hir
