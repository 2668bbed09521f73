// Transpose: dimension d of the result is dimension perm[d] of the operand.

#include <algorithm>

#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  const std::vector<int64_t>& perm = context.attributes.Ints("perm");
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool good = sorted.size() == x.dims.size() && !IsBlock(x.dtype);
  for (size_t d = 0; d < sorted.size(); ++d) good &= sorted[d] == static_cast<int64_t>(d);
  if (!good)
    return absl::InvalidArgumentError(
        absl::StrFormat("Transpose: perm is no permutation of the %d dimensions of %s", x.rank(), x.ToString()));
  TensorType result{x.dtype, {}};
  for (const int64_t d : perm) result.dims.push_back(x.dims[d]);
  return std::vector<TensorType>{std::move(result)};
}

kir::ExprRef Map(MapContext& context) {
  const std::vector<int64_t>& perm = context.node().attributes.Ints("perm");
  kir::Index at(perm.size());
  for (size_t d = 0; d < perm.size(); ++d) at[perm[d]] = context.index()[d];
  return context.Operand(0, std::move(at));
}

Status Reference(RefContext& context) {
  const std::vector<int64_t>& perm = context.node.attributes.Ints("perm");
  RefTensor& y = context.results[0];
  std::vector<int64_t> index(perm.size()), at(perm.size());
  for (double& out : y.data) {
    for (size_t d = 0; d < perm.size(); ++d) at[perm[d]] = index[d];
    out = context.operands[0]->At(at);
    NextIndex(y.dims, index);
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_transpose() {
  static const OpDef* const op = Make({
      .name = "Transpose",
      .doc = "dimension d of the result is dimension perm[d] of the operand",
      .kind = OpKind::kIndex,
      .operands = {{.name = "x"}},
      .attributes = {{.name = "perm", .kind = AttrKind::kInts}},
      .infer = Infer,
      .map = Map,
      .reference = Reference,
      .onnx = "Transpose",
  });
  return *op;
}

}  // namespace quern::ir
