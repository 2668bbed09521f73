// Qwen3-Next: three of four layers are gated delta nets (Yang et al., arXiv:2412.06464), the fourth attention with a
// gate; all have experts, and one more that every token uses.
#include "models/architecture.h"

namespace quern::models {
namespace {

struct DeltaSizes {
  int64_t kernel, head_dim, key_heads, value_heads;
  int64_t key() const { return head_dim * key_heads; }
  int64_t value() const { return head_dim * value_heads; }
};

// x over its length, which is at least the root of eps.
Value UnitLength(hir::Builder& b, Value x, double eps) {
  const Value squares = b.Reduce("sum", b.Mul(x, x), {-1}, true);
  return b.Mul(x, b.Unary("Rsqrt", b.Add(squares, b.Scalar(static_cast<float>(eps)))));
}

Value DeltaNet(Decoder& d, Value n, const Layer& layer, const DeltaSizes& sizes) {
  hir::Builder& b = d.graph();
  const Extent rows = Extent::Symbol(kSequenceSymbol);
  const int64_t each = sizes.value_heads / sizes.key_heads;
  auto heads = [&](Value value, int64_t count) {
    return b.Reshape(value, {d.batch(), rows, Extent(count), Extent(sizes.head_dim)});
  };
  const Value mixed = d.Linear(n, layer("attn_qkv"), 2 * sizes.key() + sizes.value()),
              gate = d.Linear(n, layer("attn_gate"), sizes.value());
  const Value u = b.Silu(d.CausalConvolution(mixed, layer, layer("ssm_conv1d"), sizes.kernel));
  const double eps = d.numbers().Float("attention.layer_norm_rms_epsilon", 0, 1);
  const Value q = UnitLength(b, heads(d.Columns(u, 0, sizes.key()), sizes.key_heads), eps),
              k = UnitLength(b, heads(d.Columns(u, sizes.key(), sizes.key()), sizes.key_heads), eps),
              v = heads(d.Columns(u, 2 * sizes.key(), sizes.value()), sizes.value_heads);
  // For each head of keys, beta of its heads of values, then their steps.
  const Value both = b.Reshape(d.Linear(n, layer("ssm_ba"), 2 * sizes.value_heads),
                               {d.rows(), Extent(sizes.key_heads), Extent(2), Extent(each)});
  auto half = [&](int64_t which) {
    return b.Reshape(b.Narrow(both, 2, Extent(which), Extent(1)), {d.batch(), rows, Extent(sizes.value_heads)});
  };
  const Value step = b.Unary("Softplus", b.Add(half(1), d.tensors().Vector(layer("ssm_dt.bias"), {sizes.value_heads})));
  const Value decay = b.Mul(step, d.tensors().Vector(layer("ssm_a"), {sizes.value_heads}));
  const std::vector<Value> results =
      b.Results("GatedDeltaNet", {q, k, v, decay, b.Sigmoid(half(0)),
                                  d.State(layer, "state", {sizes.value_heads, sizes.head_dim, sizes.head_dim})});
  d.Carry(layer, "state", results[1]);
  const Value o = d.RmsNormHeads(b.Reshape(results[0], {d.rows(), Extent(sizes.value())}), layer("ssm_norm"),
                                 {.head_dim = sizes.head_dim});
  return d.Linear(b.Mul(o, b.Silu(gate)), layer("ssm_out"), d.width());
}

Value GatedAttention(Decoder& d, Value n, const Layer& layer, const Heads& heads, const Rotation& rotation) {
  hir::Builder& b = d.graph();
  const Extent rows = d.rows(), size(heads.head_dim);
  // For each head its query, then its gate.
  const Value both = b.Reshape(d.Linear(n, layer("attn_q"), 2 * heads.query()),
                               {rows, Extent(heads.heads), Extent(2 * heads.head_dim)});
  auto half = [&](int64_t which) {
    return b.Reshape(b.Narrow(both, 2, size * which, size), {rows, Extent(heads.query())});
  };
  const Value q = d.Rotate(d.RmsNormHeads(half(0), layer("attn_q_norm"), heads), rotation, heads),
              k = d.Rotate(d.RmsNormHeads(d.Linear(n, layer("attn_k"), heads.key()), layer("attn_k_norm"), heads),
                           rotation, heads),
              v = d.Linear(n, layer("attn_v"), heads.key());
  const Value a = d.Attention(layer, {q, k, v}, heads);
  return d.Linear(b.Mul(a, b.Sigmoid(half(1))), layer("attn_output"), d.width());
}

Value Build(Decoder& d) {
  d.BeRecurrent();
  Value x = d.Embed();
  Hyperparameters& numbers = d.numbers();
  const Heads heads = d.ReadHeads();
  const ExpertRule experts = d.ReadExperts();
  const int64_t shared = numbers.IntOr("expert_shared_feed_forward_length", 1, kMostWidth, 1);
  const int64_t period = numbers.IntOr("full_attention_interval", 1, kMostLayers, 4);
  const DeltaSizes sizes = {.kernel = numbers.Int("ssm.conv_kernel", 2, 64),
                            .head_dim = numbers.Int("ssm.state_size", 1, kMostHeadDim),
                            .key_heads = numbers.Int("ssm.group_count", 1, kMostHeads),
                            .value_heads = numbers.Int("ssm.time_step_rank", 1, kMostHeads)};
  if (sizes.value_heads % sizes.key_heads != 0) {
    numbers.Fail("ssm.group_count",
                 absl::StrFormat("%d does not divide the %d heads", sizes.key_heads, sizes.value_heads));
    return {};
  }
  const Rotation rotation = d.ReadRotation(heads, PairStyle::kHalves);
  for (const Layer& layer : d.layers()) {
    const Value n = d.RmsNorm(x, layer("attn_norm"));
    const bool whole = (layer.index + 1) % period == 0;
    x = d.Add(x, whole ? GatedAttention(d, n, layer, heads, rotation) : DeltaNet(d, n, layer, sizes));
    const Value f = d.RmsNorm(x, layer("post_attention_norm"));
    const Value all = d.GatedFeedForward(f, layer, shared, "Silu", "_shexp");
    const Value gate = d.graph().Sigmoid(d.RowProduct(f, layer("ffn_gate_inp_shexp")));
    x = d.Add(x, d.Add(d.Experts(f, layer, experts), d.graph().Mul(all, gate)));
  }
  return d.Logits(d.RmsNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_qwen3next() {
  static constexpr Architecture architecture = {.name = "qwen3next", .doc = "Qwen3-Next", .build = Build};
  return architecture;
}

}  // namespace quern::models
