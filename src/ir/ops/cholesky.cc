// Cholesky: the triangle l with l l^T = a, or u with u^T u = a, of which the same triangle of a is read. NaN where a
// is not positive definite.

#include <cmath>

#include "ir/linear_algebra.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckMatrices(context, true));
  return std::vector<TensorType>{context.operands[0]};
}

Status Reference(RefContext& context) {
  const bool upper = context.node.attributes.Bool("upper");
  ForEachMatrix(context, [&](const Matrix& a, int64_t batch) {
    Matrix l(a.rows, a.rows);
    bool positive = true;
    for (int64_t i = 0; i < a.rows; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        double rest = upper ? a.at(j, i) : a.at(i, j);
        for (int64_t k = 0; k < j; ++k) rest -= l.at(i, k) * l.at(j, k);
        positive = positive && (i != j || rest > 0);
        l.at(i, j) = i == j ? std::sqrt(rest) : rest / l.at(j, j);
      }
    }
    Matrix result(a.rows, a.rows);
    for (int64_t i = 0; i < a.rows; ++i) {
      for (int64_t j = 0; j < a.rows; ++j) result.at(i, j) = !positive ? NAN : upper ? l.at(j, i) : l.at(i, j);
    }
    PutMatrix(context.results[0], result, batch);
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_cholesky() {
  static const OpDef* const op = Make({
      .name = "Cholesky",
      .doc = "the triangular factor of a positive definite matrix",
      .kind = OpKind::kComposite,
      .operands = {{.name = "a", .kind = OperandKind::kFloat, .shape = "[.., N, N]"}},
      .attributes = {{.name = "upper", .kind = AttrKind::kBool, .default_value = false, .doc = "u with u^T u = a"}},
      .infer = Infer,
      .reference = Reference,
      .expand =
          [](Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
            return ExpandToCall(graph, node, inputs, origin, "cholesky", node.attributes.Bool("upper") ? "u" : "");
          },
      .rtol = 1e-5,
      .magnitude = LargestMagnitude,
      .examples = {{{"f32[2, 3, 3]"}}, {{"f64[S, 2, 2]"}, {{"upper", true}}}},
  });
  return *op;
}

}  // namespace quern::ir
