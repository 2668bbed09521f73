// Qwen1.5 and Qwen2 with experts, and one more that every token uses, behind a gate of its own
// (Yang et al., arXiv:2407.10671).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  Value x = d.Embed();
  const Heads heads = d.ReadHeads();
  ExpertRule experts = d.ReadExperts();
  experts.normalise = false;
  const int64_t shared = d.numbers().IntOr("expert_shared_feed_forward_length", 1, kMostWidth, d.hidden());
  const Rotation rotation = d.ReadRotation(heads, PairStyle::kHalves);
  for (const Layer& layer : d.layers()) {
    x = d.Add(x, d.SelfAttention(d.RmsNorm(x, layer("attn_norm")), layer, heads, rotation));
    const Value n = d.RmsNorm(x, layer("ffn_norm"));
    const Value all = d.GatedFeedForward(n, layer, shared, "Silu", "_shexp");
    const Value gate = d.graph().Sigmoid(d.RowProduct(n, layer("ffn_gate_inp_shexp")));
    x = d.Add(x, d.Add(d.Experts(n, layer, experts), d.graph().Mul(all, gate)));
  }
  return d.Logits(d.RmsNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_qwen2moe() {
  static constexpr Architecture architecture = {.name = "qwen2moe", .doc = "Qwen1.5-MoE, Qwen2-MoE", .build = Build};
  return architecture;
}

}  // namespace quern::models
