// Det: determinants, by LU with partial pivoting.

#include <cmath>

#include "ir/linear_algebra.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckMatrices(context, true));
  const TensorType& a = context.operands[0];
  return std::vector<TensorType>{{a.dtype, {a.dims.begin(), a.dims.end() - 2}}};
}

Status Reference(RefContext& context) {
  ForEachMatrix(context, [&](const Matrix& a, int64_t batch) {
    ReferenceSolve(a, Matrix(a.rows, 0), &context.results[0].data[batch]);
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_det() {
  static const OpDef* const op = Make({
      .name = "Det",
      .doc = "the determinant",
      .kind = OpKind::kComposite,
      .operands = {{.name = "a", .kind = OperandKind::kFloat, .shape = "[.., N, N]"}},
      .infer = Infer,
      .reference = Reference,
      .expand = [](Graph& graph, const Node& node, std::span<const Value> inputs,
                   int origin) { return ExpandToCall(graph, node, inputs, origin, "det"); },
      .rtol = 1e-5,
      .magnitude = LargestMagnitude,
      .examples = {{{"f32[2, 3, 3]"}}, {{"f64[S, 5, 5]"}}},
  });
  return *op;
}

}  // namespace quern::ir
