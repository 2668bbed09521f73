// Losses of classification.

#include "onnx/table.h"

namespace quern::onnx {
namespace {

// -w[label] x[label], of log probabilities x [N, C, d..] and labels [N, d..].
void Loss(Call& c, Value x, Value labels, int weight_input) {
  const std::string reduction = c.Str("reduction", "mean");
  const Extents dims = c.type(x).dims;
  if (dims.size() < 2 || c.rank(labels) < 1) return c.Fail(absl::InvalidArgumentError("[N, C, ..] is needed"));
  labels = c.Cast(labels, DType::kI64);
  std::optional<Value> counts;
  const auto also = [&](Value condition) { counts = counts ? c.Add("BitAnd", {*counts, condition}) : condition; };
  if (c.Find("ignore_index") != nullptr)
    also(c.Add("Ne", {labels, c.Scalar(static_cast<double>(c.Int("ignore_index", 0)), DType::kI64)}));
  Value at = labels;
  if (counts) at = c.Add("Where", {*counts, labels, c.Like(0, labels)});
  Extents one = c.type(labels).dims;
  const Extents flat = one;
  one.insert(one.begin() + 1, Extent(1));
  const Value chosen = c.Reshape(c.Add("GatherElements", {x, c.Reshape(at, one)}, {{"axis", int64_t{1}}}), flat);
  Value weights = c.Filled(1, c.dtype(x), flat);
  const bool weighted = c.Has(weight_input);
  if (weighted) weights = c.Add("Gather", {c.x(weight_input), at}, {{"axis", int64_t{0}}});
  if (counts) weights = c.Add("Where", {*counts, weights, c.Like(0, weights)});
  // A label that does not count adds nothing, whatever x has there.
  Value loss = c.Add("Neg", {c.Add("Mul", {chosen, weights})});
  if (counts) loss = c.Add("Where", {*counts, loss, c.Like(0, loss)});
  Ints axes;
  for (size_t d = 0; d < flat.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  if (reduction == "none") return c.Return(loss);
  const Value sum = c.Reduce("sum", loss, axes, false);
  if (reduction == "sum") return c.Return(sum);
  c.Return(c.Add("Div", {sum, c.Reduce("sum", weights, axes, false)}));
}

void NegativeLogLikelihood(Call& c) { Loss(c, c.x(0), c.x(1), 2); }

void SoftmaxCrossEntropy(Call& c) {
  const Value logs = c.Add("LogSoftmax", {c.x(0)}, {{"axis", int64_t{1}}});
  Loss(c, logs, c.x(1), 2);
  c.Return(1, logs);
}

constexpr Importer kRows[] = {
    {"NegativeLogLikelihoodLoss", NegativeLogLikelihood, "", 2},
    {"SoftmaxCrossEntropyLoss", SoftmaxCrossEntropy, "", 2},
};

}  // namespace

std::span<const Importer> LossImporters() { return kRows; }

}  // namespace quern::onnx
