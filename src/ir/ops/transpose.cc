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
  bool good = sorted.size() == x.dims.size();
  for (size_t d = 0; d < sorted.size(); ++d) good &= sorted[d] == static_cast<int64_t>(d);
  if (!good) return context.AttributeError("perm", absl::StrFormat("a permutation of 0 to %d", x.rank() - 1));
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
  MoveElements(*context.operands[0], context.results[0], [&](std::vector<int64_t>& index) {
    const std::vector<int64_t> of_result = index;
    for (size_t d = 0; d < perm.size(); ++d) index[perm[d]] = of_result[d];
  });
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
