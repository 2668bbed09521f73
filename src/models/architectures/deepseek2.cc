// DeepSeek-V2: latent attention and experts (DeepSeek-AI, arXiv:2405.04434). Of keys and values only what they are made
// of is kept, one short row a token, which all heads share; a head's queries are taken there by the matrix that would
// have made its keys, and what it sums up there becomes its values. A few elements beside that row carry positions.
#include <algorithm>
#include <cmath>

#include "models/architecture.h"

namespace quern::models {
namespace {

struct Latent {
  int64_t heads, query_rank;            // 0: queries are made of the row as it is
  int64_t rank, rotated, plain, value;  // of the row that is kept; of heads: with and without positions, and of values
  double scale;
  int64_t key() const { return rank + rotated; }
};

Latent ReadLatent(Decoder& d) {
  Hyperparameters& numbers = d.numbers();
  Latent l = {.heads = numbers.Int("attention.head_count", 1, kMostHeads),
              .query_rank = 0,
              .rank = numbers.Int("attention.kv_lora_rank", 1, kMostHeadDim),
              .rotated = numbers.Int("rope.dimension_count", 2, kMostHeadDim),
              .plain = 1,
              .value = numbers.Int("attention.value_length_mla", 1, kMostHeadDim),
              .scale = 1};
  if (d.tensors().Has("blk.0.attn_q_a.weight")) l.query_rank = numbers.Int("attention.q_lora_rank", 1, kMostWidth);
  const int64_t whole = numbers.Int("attention.key_length_mla", 1, kMostHeadDim);
  if (whole <= l.rotated) {
    numbers.Fail("attention.key_length_mla",
                 absl::StrFormat("%d is not above the %d elements that turn", whole, l.rotated));
  } else {
    l.plain = whole - l.rotated;
  }
  // yarn's growth of the logits is made up for here, twice: of queries and of keys.
  const RotaryRule rule = ReadRotaryRule(numbers, l.rotated, 1);
  const double weight = rule.yarn ? numbers.FloatOr("rope.scaling.yarn_log_multiplier", 0, 1e3, 0) : 0;
  const double growth = rule.magnitude * (1 + weight * std::log(std::max(rule.factor, 1.0)));
  l.scale = growth * growth / std::sqrt(static_cast<double>(whole));
  return l;
}

// Rows [SEQ, heads * in], each head by its own matrix of a tensor [heads, out, in]: [SEQ, heads, out].
Value ByHead(Decoder& d, Value rows, const std::string& name, const Latent& l, int64_t in, int64_t out) {
  const Extent sequence = Extent::Symbol(kSequenceSymbol), all = sequence * l.heads;
  const std::vector<Extent> heads = {sequence, Extent(l.heads)};
  const Value weight = d.tensors().Weight(name + ".weight", {l.heads, out, in});
  const Value head = d.graph().Mir("Iota", {}, {{"shape", heads}, {"axis", int64_t{1}}, {"dtype", DType::kI32}});
  const Value made = d.graph().Mir("GroupedMatMul",
                                   {d.graph().Reshape(rows, {all, Extent(in)}), weight, d.graph().Reshape(head, {all})},
                                   {{"transpose_b", true}});
  return d.graph().Reshape(made, {sequence, Extent(l.heads), Extent(out)});
}

Value LatentAttention(Decoder& d, Value x, const Layer& layer, const Latent& l, const Rotation& rotation) {
  const Extent sequence = Extent::Symbol(kSequenceSymbol), heads(l.heads);
  const int64_t whole = l.plain + l.rotated;
  Value q = x;
  if (l.query_rank > 0) q = d.RmsNorm(d.Linear(x, layer("attn_q_a"), l.query_rank), layer("attn_q_a_norm"));
  q = d.Linear(q, layer(l.query_rank > 0 ? "attn_q_b" : "attn_q"), l.heads * whole);
  q = d.graph().Reshape(q, {sequence, heads, Extent(whole)});
  const auto part = [&](int64_t from, int64_t count) {
    return d.graph().Reshape(d.graph().Narrow(q, 2, Extent(from), Extent(count)), {sequence, Extent(l.heads * count)});
  };
  const Value taken = ByHead(d, part(0, l.plain), layer("attn_k_b"), l, l.plain, l.rank);
  const Value turned = d.Rotate(part(l.plain, l.rotated), rotation, {.heads = l.heads, .head_dim = l.rotated});
  const Value query = d.graph().Concat({taken, d.graph().Reshape(turned, {sequence, heads, Extent(l.rotated)})}, 2);

  const Value kept = d.Linear(x, layer("attn_kv_a_mqa"), l.key());
  const Value row = d.RmsNorm(d.Columns(kept, 0, l.rank), layer("attn_kv_a_norm"));
  const Value position = d.Rotate(d.Columns(kept, l.rank, l.rotated), rotation, {.head_dim = l.rotated});
  const Value key = d.graph().Concat({row, position}, 1);

  const Heads shape = {.heads = l.heads, .kv_heads = 1, .head_dim = l.key()};
  const Value a = d.Attention(layer, {d.graph().Reshape(query, {sequence, Extent(shape.query())}), key, {}}, shape,
                              {.scale = l.scale});
  const Value summed =
      d.graph().Narrow(d.graph().Reshape(a, {sequence, heads, Extent(l.key())}), 2, Extent(0), Extent(l.rank));
  const Value values = ByHead(d, summed, layer("attn_v_b"), l, l.rank, l.value);
  return d.Linear(d.graph().Reshape(values, {sequence, Extent(l.heads * l.value)}), layer("attn_output"), d.width());
}

Value Build(Decoder& d) {
  Value x = d.Embed();
  const Latent latent = ReadLatent(d);
  const int64_t dense = d.numbers().IntOr("leading_dense_block_count", 0, kMostLayers, 0);
  ExpertRule experts = d.ReadExperts();
  experts.normalise = d.numbers().BoolOr("expert_weights_norm", false);
  experts.sigmoid = d.numbers().IntOr("expert_gating_func", 0, 2, 1) == 2;
  const int64_t shared = d.numbers().IntOr("expert_shared_count", 0, kMostHeads, 0) * experts.hidden;
  if (d.numbers().IntOr("expert_group_count", 0, kMostHeads, 0) > 1)
    d.numbers().FailUnsupported("expert_group_count", "experts are not chosen by groups");
  const Rotation rotation = d.ReadRotation({.heads = latent.heads, .head_dim = latent.rotated}, PairStyle::kNeighbours);
  for (const Layer& layer : d.layers()) {
    x = d.Add(x, LatentAttention(d, d.RmsNorm(x, layer("attn_norm")), layer, latent, rotation));
    const Value n = d.RmsNorm(x, layer("ffn_norm"));
    if (layer.index < dense || experts.experts == 0) {
      x = d.Add(x, d.GatedFeedForward(n, layer, d.hidden(), "Silu"));
      continue;
    }
    Value made = d.Experts(n, layer, experts);
    if (shared > 0) made = d.Add(made, d.GatedFeedForward(n, layer, shared, "Silu", "_shexp"));
    x = d.Add(x, made);
  }
  return d.Logits(d.RmsNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_deepseek2() {
  static constexpr Architecture architecture = {
      .name = "deepseek2", .doc = "DeepSeek-V2: latent attention, experts", .build = Build};
  return architecture;
}

}  // namespace quern::models
