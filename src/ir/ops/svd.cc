// Svd: u s v^T = a with orthonormal columns of u and rows of v^T, and s falling: [.., M, K], [.., K] and [.., K, N], K
// the smaller of M and N. Of each pair of vectors the sign is that where the sum of u by weights 1 / (i + pi) is not
// negative.

#include <algorithm>
#include <cmath>

#include "ir/linear_algebra.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  QUERN_RETURN_IF_ERROR(CheckMatrices(context, false));
  const TensorType& a = context.operands[0];
  TensorType u = a, s = a, v = a;
  const Extent &m = a.dims[a.dims.size() - 2], &n = a.dims.back();
  const Extent k = m != n && m.constant() > n.constant() ? n : m;
  u.dims.back() = k;
  v.dims[v.dims.size() - 2] = k;
  s.dims.pop_back();
  s.dims.back() = k;
  return std::vector<TensorType>{u, s, v};
}

// Eigenvectors of [0 a; a^T 0] are u over v, by singular values and their negatives.
Status Reference(RefContext& context) {
  ForEachMatrix(context, [&](const Matrix& a, int64_t batch) {
    const int64_t m = a.rows, n = a.columns, k = std::min(m, n);
    Matrix both(m + n, m + n), vectors(0, 0);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) both.at(i, m + j) = both.at(m + j, i) = a.at(i, j);
    }
    std::vector<double> values;
    ReferenceEigen(both, values, vectors);
    Matrix u(m, k), s(k, 1), v(k, n);
    for (int64_t c = 0; c < k; ++c) {
      const int64_t from = m + n - 1 - c;
      s.at(c, 0) = values[from];
      for (int64_t i = 0; i < m; ++i) u.at(i, c) = vectors.at(i, from) * std::sqrt(2.0);
      const double sign = SignOf(u, c);
      for (int64_t i = 0; i < m; ++i) u.at(i, c) *= sign;
      for (int64_t j = 0; j < n; ++j) v.at(c, j) = sign * vectors.at(m + j, from) * std::sqrt(2.0);
    }
    PutMatrix(context.results[0], u, batch);
    PutMatrix(context.results[1], s, batch);
    PutMatrix(context.results[2], v, batch);
  });
  return absl::OkStatus();
}

}  // namespace

const OpDef& Op_svd() {
  static const OpDef* const op = Make({
      .name = "Svd",
      .doc = "a = u s v^T: u, s falling, v^T",
      .kind = OpKind::kComposite,
      .operands = {{.name = "a", .kind = OperandKind::kFloat, .shape = "[.., M, N]"}},
      .infer = Infer,
      .reference = Reference,
      .expand = [](Graph& graph, const Node& node, std::span<const Value> inputs,
                   int origin) { return ExpandToCall(graph, node, inputs, origin, "svd"); },
      .rtol = 1e-5,
      .magnitude = LargestMagnitude,
      .examples = {{{"f32[2, 5, 3]"}}, {{"f64[2, 3, 4]"}}, {{"f32[S, 3, 3]"}}},
  });
  return *op;
}

}  // namespace quern::ir
