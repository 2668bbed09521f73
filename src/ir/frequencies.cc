#include "ir/frequencies.h"

#include <cmath>

#include "ir/fourier.h"
#include "ir/shape.h"

namespace quern::ir {
namespace {

// `kReal`: the first half of them, which is all that a transform of reals has.
template <bool kReal>
int64_t Count(int64_t n) {
  return kReal ? n / 2 + 1 : n;
}
template <bool kReal>
double Cycles(int64_t k, int64_t n) {
  return static_cast<double>(kReal || k < (n + 1) / 2 ? k : k - n);
}

template <bool kReal>
StatusOr<std::vector<TensorType>> Infer(const InferContext& context) {
  const int64_t n = context.attributes.Int("n");
  const double d = context.attributes.Float("d");
  if (n < 1 || n > kLongestLine) return context.AttributeError("n", absl::StrFormat("1 to %d", kLongestLine));
  if (!(d > 0) || !std::isfinite(d)) return context.AttributeError("d", "a number above 0");
  return std::vector<TensorType>{{DType::kF32, {Extent(Count<kReal>(n))}}};
}

template <bool kReal>
Status Reference(RefContext& context) {
  const int64_t n = context.node.attributes.Int("n");
  const double step = 1 / (static_cast<double>(n) * context.node.attributes.Float("d"));
  for (int64_t k = 0; k < Count<kReal>(n); ++k) context.results[0].data[k] = Cycles<kReal>(k, n) * step;
  return absl::OkStatus();
}

template <bool kReal>
StatusOr<std::vector<Value>> Expand(Graph& graph, const Node& node, std::span<const Value>, int origin) {
  Expansion e(graph, origin);
  const int64_t n = node.attributes.Int("n");
  const double span = static_cast<double>(n) * node.attributes.Float("d");
  std::vector<double> values;
  for (int64_t k = 0; k < Count<kReal>(n); ++k) values.push_back(Cycles<kReal>(k, n) / span);
  return e.Finish({e.Floats(values, DType::kF32)});
}

}  // namespace

const OpDef* Frequencies(const char* name, const char* doc, bool real) {
  return Make({
      .name = name,
      .doc = doc,
      .kind = OpKind::kComposite,
      .attributes = {{.name = "n", .kind = AttrKind::kInt},
                     {.name = "d", .kind = AttrKind::kFloat, .default_value = 1.0, .doc = "between two elements"}},
      .infer = real ? Infer<true> : Infer<false>,
      .reference = real ? Reference<true> : Reference<false>,
      .expand = real ? Expand<true> : Expand<false>,
      .examples = {{{}, {{"n", int64_t{8}}}}, {{}, {{"n", int64_t{7}}, {"d", 0.5}}}},
  });
}

}  // namespace quern::ir
