// The feed-forward parts of a Decoder: plain, gated, and by experts.

#include "models/decoder.h"

namespace quern::models {
namespace {

std::string FfnLabel(const Layer& layer, std::string_view suffix) {
  return absl::StrFormat("layers.%d/ffn%s", layer.index, suffix);
}

}  // namespace

Value Decoder::GatedFeedForward(Value x, const Layer& layer, int64_t hidden, const char* activation,
                                const std::string& suffix) {
  const Value gate = Linear(x, layer("ffn_gate" + suffix), hidden), up = Linear(x, layer("ffn_up" + suffix), hidden);
  const std::string label = FfnLabel(layer, suffix);
  const Value both = graph_.Mir("Mul", {graph_.Mir(activation, {gate}, {}, label), up}, {}, label);
  return Linear(both, layer("ffn_down" + suffix), width());
}

Value Decoder::FusedGatedFeedForward(Value x, const Layer& layer, int64_t hidden, const char* activation) {
  const Value all = Linear(x, layer("ffn_up"), 2 * hidden);
  const std::string label = FfnLabel(layer, "");
  const Value both = graph_.Mir(
      "Mul", {graph_.Mir(activation, {Columns(all, 0, hidden)}, {}, label), Columns(all, hidden, hidden)}, {}, label);
  return Linear(both, layer("ffn_down"), width());
}

Value Decoder::FeedForward(Value x, const Layer& layer, int64_t hidden, const char* activation) {
  const Value up = Linear(x, layer("ffn_up"), hidden);
  return Linear(graph_.Mir(activation, {up}, {}, FfnLabel(layer, "")), layer("ffn_down"), width());
}

Value Decoder::Experts(Value x, const Layer& layer, const ExpertRule& rule) {
  const Extent rows = this->rows(), used(rule.used), all = rows * rule.used;
  const std::string label = FfnLabel(layer, "_experts");
  const Value router = Linear(x, layer("ffn_gate_inp"), rule.experts);
  const Value shares = rule.sigmoid ? graph_.Sigmoid(router) : graph_.Softmax(router);
  const std::vector<Value> best = graph_.MirResults("TopK", {shares}, {{"k", rule.used}}, label);
  Value weights = best[0];  // [SEQ, used]
  if (rule.normalise) {
    // No sum is below the least normal f16: rows whose shares are all but 0 keep finite weights.
    const Value sum = graph_.Max(graph_.Reduce("sum", weights, {1}, true), graph_.Scalar(6.103515625e-5f));
    weights = graph_.Div(weights, sum);
  }
  weights = Scale(weights, rule.scale);

  // Each token once for each of its experts.
  const Value which = graph_.Reshape(best[1], {all});
  const Value repeated = graph_.Reshape(
      graph_.Expand(graph_.Reshape(x, {rows, Extent(1), Extent(width())}), {rows, used, Extent(width())}),
      {all, Extent(width())});
  auto by_expert = [&](Value operand, const char* name, int64_t in, int64_t out) {
    const Value weight = tensors_.Weight(layer(name) + ".weight", {rule.experts, out, in});
    const Value y = graph_.Mir("GroupedMatMul", {operand, weight, which}, {{"transpose_b", true}}, label);
    return adapters_.GroupedProduct(y, operand, which, layer(name) + ".weight", label);
  };
  const Value gate = by_expert(repeated, "ffn_gate_exps", width(), rule.hidden),
              up = by_expert(repeated, "ffn_up_exps", width(), rule.hidden);
  const Value both = graph_.Mir("Mul", {graph_.Mir(rule.activation, {gate}, {}, label), up}, {}, label);
  const Value down =
      graph_.Reshape(by_expert(both, "ffn_down_exps", rule.hidden, width()), {rows, used, Extent(width())});
  return graph_.Reduce("sum", graph_.Mul(down, graph_.Reshape(weights, {rows, used, Extent(1)})), {1});
}

}  // namespace quern::models
