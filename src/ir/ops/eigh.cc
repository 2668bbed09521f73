// Eigh: eigenvalues of symmetric matrices, rising, and eigenvectors in columns, of one triangle of a. The sign of a
// vector is that where its sum by weights 1 / (i + pi) is not negative.

#include <algorithm>
#include <cmath>

#include "ir/linear_algebra.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckMatrices(context, true));
  TensorType values = context.operands[0];
  values.dims.pop_back();
  return std::vector<TensorType>{values, context.operands[0]};
}

Status Reference(RefContext& context) {
  const bool upper = context.node.attributes.Bool("upper");
  ForEachMatrix(context, [&](const Matrix& a, int64_t batch) {
    Matrix symmetric(a.rows, a.rows), values(a.rows, 1), vectors(0, 0);
    for (int64_t i = 0; i < a.rows; ++i) {
      for (int64_t j = 0; j < a.rows; ++j)
        symmetric.at(i, j) = upper ? a.at(std::min(i, j), std::max(i, j)) : a.at(std::max(i, j), std::min(i, j));
    }
    ReferenceEigen(symmetric, values.data, vectors);
    PutMatrix(context.results[0], values, batch);
    PutMatrix(context.results[1], vectors, batch);
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_eigh() {
  static const OpDef* const op = Make({
      .name = "Eigh",
      .doc = "eigenvalues of a symmetric matrix, rising, and eigenvectors",
      .kind = OpKind::kComposite,
      .operands = {{.name = "a", .kind = OperandKind::kFloat, .shape = "[.., N, N]"}},
      .attributes =
          {{.name = "upper", .kind = AttrKind::kBool, .default_value = false, .doc = "reads the upper triangle"}},
      .infer = Infer,
      .reference = Reference,
      .expand =
          [](Graph& graph, const Node& node, std::span<const Value> inputs, int origin) {
            return ExpandToCall(graph, node, inputs, origin, "eigh", node.attributes.Bool("upper") ? "u" : "");
          },
      .rtol = 1e-5,
      .magnitude = LargestMagnitude,
      .examples = {{{"f32[2, 3, 3]"}}, {{"f64[S, 4, 4]"}, {{"upper", true}}}},
  });
  return *op;
}

}  // namespace quern::ir
