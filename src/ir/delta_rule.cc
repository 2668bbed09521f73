#include "ir/delta_rule.h"

#include <cmath>

#include "ir/shape.h"

namespace quern::ir {

StatusOr<std::vector<TensorType>> InferDeltaRule(const InferContext& context, bool per_channel) {
  const std::span<const TensorType> operands = context.operands;
  for (const int i : {kDeltaQ, kDeltaK, kDeltaV, kDeltaDecay, kDeltaBeta}) {
    if (operands[i].dtype == DType::kF64) return context.UnsupportedError(i, "f32, f16 or bf16: the state is f32");
  }
  const TensorType &q = operands[kDeltaQ], &v = operands[kDeltaV];
  const auto sizes = [](const TensorType& type) {
    return type.rank() == 4 && type.dims[2].is_constant() && type.dims[2].constant() > 0 &&
           type.dims[3].is_constant() && type.dims[3].constant() > 0;
  };
  if (!sizes(q)) return context.ShapeError(kDeltaQ, "[B, S, G, n], G and n constants of 1 or more");
  if (!context.Equal(operands[kDeltaK].dims, q.dims)) return context.ShapeError(kDeltaK, ToString(q.dims));
  const Extent &batch = q.dims[0], &length = q.dims[1], &n = q.dims[3];
  const int64_t groups = q.dims[2].constant();
  if (!sizes(v) || v.dims[2].constant() % groups != 0 || !context.Equal(v.dims[0], batch) ||
      !context.Equal(v.dims[1], length)) {
    return context.ShapeError(kDeltaV, absl::StrFormat("[%s, %s, H, m], constants, H a multiple of %d",
                                                       batch.ToString(), length.ToString(), groups));
  }
  const Extent &heads = v.dims[2], &m = v.dims[3];
  std::vector<Extent> each = {batch, length, heads};
  if (!context.Equal(operands[kDeltaBeta].dims, each)) return context.ShapeError(kDeltaBeta, ToString(each));
  if (per_channel) each.push_back(n);
  if (!context.Equal(operands[kDeltaDecay].dims, each)) return context.ShapeError(kDeltaDecay, ToString(each));
  const TensorType state = {DType::kF32, {batch, heads, n, m}};
  if (operands.size() > kDeltaState) {
    if (operands[kDeltaState].dtype != state.dtype) return context.DTypeError(kDeltaState, "f32");
    if (!context.Equal(operands[kDeltaState].dims, state.dims))
      return context.ShapeError(kDeltaState, ToString(state.dims));
  }
  return std::vector<TensorType>{{v.dtype, {batch, length, heads, m}}, state};
}

namespace {

struct Exact {
  static double Term(double x) { return x; }
  static double Minus(double a, double b) { return a - b; }
};
struct Bound {
  static double Term(double x) { return std::fabs(x); }
  static double Minus(double a, double b) { return a + b; }
};

template <typename Arithmetic>
Status Run(RefContext& context, double scale) {
  const RefTensor &q = *context.operands[kDeltaQ], &k = *context.operands[kDeltaK], &v = *context.operands[kDeltaV],
                  &g = *context.operands[kDeltaDecay], &beta = *context.operands[kDeltaBeta];
  const bool carried = context.operands.size() > kDeltaState && context.operands[kDeltaState] != nullptr;
  RefTensor &o = context.results[0], &states = context.results[1];
  const int64_t batch = q.dims[0], length = q.dims[1], groups = q.dims[2], n = q.dims[3], heads = v.dims[2],
                m = v.dims[3];
  const auto term = Arithmetic::Term;
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(n));
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      double* const state = states.data.data() + (b * heads + h) * n * m;
      if (carried) {
        const double* const before = context.operands[kDeltaState]->data.data() + (b * heads + h) * n * m;
        for (int64_t e = 0; e < n * m; ++e) state[e] = term(before[e]);
      }
      for (int64_t t = 0; t < length; ++t) {
        const int64_t token = b * length + t, row = token * heads + h, key = token * groups + h / (heads / groups);
        for (int64_t i = 0; i < n; ++i) {
          const double decay = std::exp(g.dims.size() == 4 ? g.data[row * n + i] : g.data[row]);
          for (int64_t j = 0; j < m; ++j) state[i * m + j] *= decay;
        }
        for (int64_t j = 0; j < m; ++j) {
          double u = 0, out = 0;
          for (int64_t i = 0; i < n; ++i) u += state[i * m + j] * term(k.data[key * n + i]);
          const double d = term(beta.data[row]) * Arithmetic::Minus(term(v.data[row * m + j]), u);
          for (int64_t i = 0; i < n; ++i) {
            state[i * m + j] += term(k.data[key * n + i]) * d;
            out += state[i * m + j] * term(q.data[key * n + i]);
          }
          o.data[row * m + j] = RoundTo(o.dtype, out * term(scale));
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status ReferenceDeltaRule(RefContext& context, double scale) { return Run<Exact>(context, scale); }
Status MagnitudeOfDeltaRule(RefContext& context, double scale) { return Run<Bound>(context, scale); }

}  // namespace quern::ir
