// LogDet: the sign of determinants, and the logarithm of their size: where a is singular 0 and -inf.

#include <cmath>

#include "ir/linear_algebra.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckMatrices(context, true));
  const TensorType& a = context.operands[0];
  const TensorType each = {a.dtype, {a.dims.begin(), a.dims.end() - 2}};
  return std::vector<TensorType>{each, each};
}

Status Reference(RefContext& context) {
  ForEachMatrix(context, [&](const Matrix& a, int64_t batch) {
    double determinant = 0;
    ReferenceSolve(a, Matrix(a.rows, 0), &determinant);
    context.results[0].data[batch] = std::isnan(determinant) ? NAN : determinant < 0 ? -1 : determinant > 0 ? 1 : 0;
    context.results[1].data[batch] = std::log(std::fabs(determinant));
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_log_det() {
  static const OpDef* const op = Make({
      .name = "LogDet",
      .doc = "the sign of the determinant and the logarithm of its size",
      .kind = OpKind::kComposite,
      .operands = {{.name = "a", .kind = OperandKind::kFloat, .shape = "[.., N, N]"}},
      .infer = Infer,
      .reference = Reference,
      .expand = [](Graph& graph, const Node& node, std::span<const Value> inputs,
                   int origin) { return ExpandToCall(graph, node, inputs, origin, "log_det"); },
      .rtol = 1e-5,
      .magnitude = LargestMagnitude,
      .examples = {{{"f32[2, 3, 3]"}}, {{"f64[S, 5, 5]"}}},
  });
  return *op;
}

}  // namespace quern::ir
