// FftFreq: the frequencies of the results of Fft, cycles by n d: 0, 1, .. and in the second half .., -2, -1, as numpy's
// fftfreq.

#include <cmath>

#include "ir/fourier.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

int64_t Count(int64_t n) { return n; }
double Cycles(int64_t k, int64_t n) { return static_cast<double>(k < (n + 1) / 2 ? k : k - n); }

StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const int64_t n = context.attributes.Int("n");
  const double d = context.attributes.Float("d");
  if (n < 1 || n > kLongestLine) return context.AttributeError("n", absl::StrFormat("1 to %d", kLongestLine));
  if (!(d > 0) || !std::isfinite(d)) return context.AttributeError("d", "a number above 0");
  return std::vector<TensorType>{{DType::kF32, {Extent(Count(n))}}};
}

Status Reference(RefContext& context) {
  const int64_t n = context.node.attributes.Int("n");
  const double step = 1 / (static_cast<double>(n) * context.node.attributes.Float("d"));
  for (int64_t k = 0; k < Count(n); ++k) context.results[0].data[k] = Cycles(k, n) * step;
  return absl::OkStatus();
}

StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value>, int origin) {
  Expansion e(graph, origin);
  const int64_t n = node.attributes.Int("n");
  const double span = static_cast<double>(n) * node.attributes.Float("d");
  std::vector<double> values;
  for (int64_t k = 0; k < Count(n); ++k) values.push_back(Cycles(k, n) / span);
  return e.Finish({e.Floats(values, DType::kF32)});
}

}  // namespace

const OpDef& Op_fft_freq() {
  static const OpDef* const op = Make({
      .name = "FftFreq",
      .doc = "the frequencies of the results of Fft, as numpy's fftfreq",
      .kind = OpKind::kComposite,
      .attributes = {{.name = "n", .kind = AttrKind::kInt},
                     {.name = "d", .kind = AttrKind::kFloat, .default_value = 1.0, .doc = "between two elements"}},
      .infer = Infer,
      .reference = Reference,
      .expand = Expand,
      .examples = {{{}, {{"n", int64_t{8}}}}, {{}, {{"n", int64_t{7}}, {"d", 0.5}}}},
  });
  return *op;
}

}  // namespace quern::ir
