#include "ir/selective_scan.h"

#include <cmath>

#include "ir/shape.h"

namespace quern::ir {

StatusOr<std::vector<TensorType>> InferSelectiveScan(const InferContext& context) {
  const std::span<const TensorType> operands = context.operands;
  const TensorType &x = operands[kScanX], &a = operands[kScanA], &b = operands[kScanB];
  for (int i = 0; i < static_cast<int>(operands.size()); ++i) {
    if (operands[i].dtype == DType::kF64) return context.UnsupportedError(i, "f32, f16 or bf16: the state is f32");
  }
  if (x.rank() != 3) return context.ShapeError(kScanX, "[B, S, H]");
  const Extent &batch = x.dims[0], &length = x.dims[1], &channels = x.dims[2];
  if (!context.Equal(operands[kScanDelta].dims, x.dims)) return context.ShapeError(kScanDelta, ToString(x.dims));
  if (a.rank() != 2 || !context.Equal(a.dims[0], channels) || !a.dims[1].is_constant() || a.dims[1].constant() < 1)
    return context.ShapeError(kScanA, absl::StrFormat("[%s, n], n a constant of 1 or more", channels.ToString()));
  // One decay for all numbers of a channel leaves it to b how many there are.
  const bool shared = a.dims[1].constant() == 1 && b.rank() == 3 && b.dims[2].is_constant() && b.dims[2].constant() > 1;
  const Extent& n = shared ? b.dims[2] : a.dims[1];
  const std::vector<Extent> each = {batch, length, n}, state = {batch, channels, n};
  for (const int i : {kScanB, kScanC}) {
    if (!context.Equal(operands[i].dims, each)) return context.ShapeError(i, ToString(each));
  }
  const int count = static_cast<int>(operands.size());
  if (count > kScanD && !context.Equal(operands[kScanD].dims, std::vector<Extent>{channels}))
    return context.ShapeError(kScanD, ToString({channels}));
  if (count > kScanState) {
    if (operands[kScanState].dtype != DType::kF32) return context.DTypeError(kScanState, "f32");
    if (!context.Equal(operands[kScanState].dims, state)) return context.ShapeError(kScanState, ToString(state));
  }
  return std::vector<TensorType>{x, {DType::kF32, state}};
}

namespace {

Status Run(RefContext& context, double (*term)(double)) {
  const auto operand = [&](size_t i) { return i < context.operands.size() ? context.operands[i] : nullptr; };
  const RefTensor &x = *operand(kScanX), &delta = *operand(kScanDelta), &a = *operand(kScanA), &b = *operand(kScanB),
                  &c = *operand(kScanC);
  const RefTensor *const d = operand(kScanD), *const carried = operand(kScanState);
  RefTensor &y = context.results[0], &states = context.results[1];
  const int64_t batch = x.dims[0], length = x.dims[1], channels = x.dims[2], n = b.dims[2], decays = a.dims[1];
  for (int64_t s = 0; s < batch; ++s) {
    for (int64_t h = 0; h < channels; ++h) {
      std::vector<double> state(n);
      for (int64_t i = 0; carried != nullptr && i < n; ++i) state[i] = term(carried->data[(s * channels + h) * n + i]);
      for (int64_t t = 0; t < length; ++t) {
        const int64_t token = s * length + t, at = token * channels + h;
        const double step = delta.data[at], now = x.data[at];
        double out = d == nullptr ? 0 : term(d->data[h] * now);
        for (int64_t i = 0; i < n; ++i) {
          state[i] =
              std::exp(step * a.data[h * decays + i % decays]) * state[i] + term(step * b.data[token * n + i] * now);
          out += state[i] * term(c.data[token * n + i]);
        }
        y.data[at] = RoundTo(y.dtype, out);
      }
      for (int64_t i = 0; i < n; ++i) states.data[(s * channels + h) * n + i] = state[i];
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status ReferenceSelectiveScan(RefContext& context) {
  return Run(context, [](double term) { return term; });
}
Status MagnitudeOfSelectiveScan(RefContext& context) {
  // The exponent is rounded too: e^x is off by |x| of its last places.
  return Run(context, [](double term) { return std::fabs(term); });
}

}  // namespace quern::ir
