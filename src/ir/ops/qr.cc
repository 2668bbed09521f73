// Qr: q with orthonormal columns and a triangle r whose diagonal is not negative, q r = a: [.., M, K] and [.., K, N],
// K the smaller of M and N.

#include <algorithm>
#include <cmath>

#include "ir/linear_algebra.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckMatrices(context, false));
  const TensorType& a = context.operands[0];
  TensorType q = a, r = a;
  const Extent &m = a.dims[a.dims.size() - 2], &n = a.dims.back();
  if (m != n && m.constant() < n.constant())
    q.dims.back() = m;
  else
    r.dims[r.dims.size() - 2] = n;
  return std::vector<TensorType>{q, r};
}

// Gram and Schmidt, twice.
Status Reference(RefContext& context) {
  ForEachMatrix(context, [&](const Matrix& a, int64_t batch) {
    const int64_t k = std::min(a.rows, a.columns);
    Matrix q(a.rows, k), r(k, a.columns);
    for (int64_t j = 0; j < a.columns; ++j) {
      std::vector<double> rest(a.rows);
      for (int64_t i = 0; i < a.rows; ++i) rest[i] = a.at(i, j);
      for (int pass = 0; pass < 2; ++pass) {
        for (int64_t c = 0; c < std::min(j, k); ++c) {
          double part = 0;
          for (int64_t i = 0; i < a.rows; ++i) part += q.at(i, c) * rest[i];
          for (int64_t i = 0; i < a.rows; ++i) rest[i] -= part * q.at(i, c);
          r.at(c, j) += part;
        }
      }
      if (j >= k) continue;
      double squares = 0;
      for (const double value : rest) squares += value * value;
      r.at(j, j) = std::sqrt(squares);
      for (int64_t i = 0; i < a.rows; ++i) q.at(i, j) = rest[i] / r.at(j, j);
    }
    PutMatrix(context.results[0], q, batch);
    PutMatrix(context.results[1], r, batch);
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_qr() {
  static const OpDef* const op = Make({
      .name = "Qr",
      .doc = "a = q r, q orthonormal and r triangular",
      .kind = OpKind::kComposite,
      .operands = {{.name = "a", .kind = OperandKind::kFloat, .shape = "[.., M, N]"}},
      .infer = Infer,
      .reference = Reference,
      .expand = [](Graph& graph, const Node& node, std::span<const Value> inputs,
                   int origin) { return ExpandToCall(graph, node, inputs, origin, "qr"); },
      .rtol = 1e-5,
      .magnitude = LargestMagnitude,
      .examples = {{{"f32[2, 5, 3]"}}, {{"f64[3, 3, 7]"}}, {{"f32[S, 4, 4]"}}},
  });
  return *op;
}

}  // namespace quern::ir
