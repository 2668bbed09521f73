// TriangularSolve: x of a x = b, by substitution row after row, where a [.., N, N] has nothing on one side of its
// diagonal: what it holds there is not looked at. A zero on the diagonal gives what dividing by it gives.

#include <cmath>

#include "ir/shape.h"

namespace quern::ir {
namespace {

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const TensorType &a = context.operands[0], &b = context.operands[1];
  if (a.dtype != DType::kF32 && a.dtype != DType::kF64) return context.UnsupportedError(0, "f32 or f64");
  const int rank = a.rank();
  if (rank < 2 || !context.Equal(a.dims[rank - 1], a.dims[rank - 2])) return context.ShapeError(0, "[.., N, N]");
  std::vector<Extent> dims(a.dims.begin(), a.dims.end() - 1);
  bool fits = b.rank() == rank;
  for (int d = 0; fits && d + 1 < rank; ++d) fits = context.Equal(b.dims[d], dims[d]);
  dims.emplace_back(1);
  if (!fits) return context.ShapeError(1, absl::StrFormat("%s with any number of columns", ToString(dims)));
  return std::vector<TensorType>{b};
}

void Run(RefContext& context, bool bound) {
  const RefTensor &a = *context.operands[0], &b = *context.operands[1];
  RefTensor& x = context.results[0];
  const Attributes& attributes = context.node.attributes;
  const bool transpose = attributes.Bool("transpose"), unit = attributes.Bool("unit");
  const bool forward = attributes.Bool("lower") != transpose;
  const int64_t columns = b.dims.back(), n = b.dims[b.dims.size() - 2];
  const int64_t matrices = n * columns == 0 ? 0 : b.elements() / (n * columns);
  for (int64_t m = 0; m < matrices; ++m) {
    const auto element = [&](int64_t r, int64_t c) {
      const double value = transpose ? a.data[(m * n + c) * n + r] : a.data[(m * n + r) * n + c];
      return bound ? std::fabs(value) : value;
    };
    for (int64_t step = 0; step < n; ++step) {
      const int64_t r = forward ? step : n - 1 - step;
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t at = (m * n + r) * columns + c;
        double value = bound ? std::fabs(b.data[at]) : b.data[at];
        for (int64_t before = 0; before < step; ++before) {
          const int64_t s = forward ? before : n - 1 - before;
          const double term = element(r, s) * x.data[(m * n + s) * columns + c];
          value = bound ? value + term : value - term;
        }
        x.data[at] = unit ? value : value / element(r, r);
      }
    }
  }
}

}  // namespace

const OpDef& Op_triangular_solve() {
  static const OpDef* const op = Make({
      .name = "TriangularSolve",
      .doc = "x of a x = b, where a is triangular",
      .kind = OpKind::kRoot,
      .family = "triangular_solve",
      .operands = {{.name = "a", .kind = OperandKind::kFloat, .shape = "[.., N, N]"},
                   {.name = "b", .kind = OperandKind::kFloat, .shape = "[.., N, K]"}},
      .attributes = {{.name = "lower",
                      .kind = AttrKind::kBool,
                      .default_value = true,
                      .doc = "of a the part up to the diagonal counts, else from it on"},
                     {.name = "transpose", .kind = AttrKind::kBool, .default_value = false, .doc = "a^T x = b"},
                     {.name = "unit", .kind = AttrKind::kBool, .default_value = false, .doc = "the diagonal is ones"}},
      .infer = Infer,
      .reference = [](RefContext& c) -> Status { return Run(c, false), absl::OkStatus(); },
      .rtol = 1e-5,
      .magnitude = [](RefContext& c) -> Status { return Run(c, true), absl::OkStatus(); },
      .examples = {{{"f32[2, 5, 5]", "f32[2, 5, 3]"}, {{"unit", true}}},
                   {{"f64[S, 3, 3]", "f64[S, 3, 35]"}, {{"unit", true}, {"lower", false}}},
                   {{"f32[S, S]", "f32[S, 17]"}, {{"unit", true}, {"transpose", true}}}},
  });
  return *op;
}

}  // namespace quern::ir
