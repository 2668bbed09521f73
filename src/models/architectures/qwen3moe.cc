// Qwen3 with experts (Yang et al., arXiv:2505.09388).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  Value x = d.Embed();
  const Heads heads = d.ReadHeads();
  const ExpertRule experts = d.ReadExperts();
  const Rotation rotation = d.ReadRotation(heads, PairStyle::kHalves);
  for (const Layer& layer : d.layers()) {
    auto [q, k, v] = d.Project(d.RmsNorm(x, layer("attn_norm")), layer, heads);
    q = d.Rotate(d.RmsNormHeads(q, layer("attn_q_norm"), heads), rotation, heads);
    k = d.Rotate(d.RmsNormHeads(k, layer("attn_k_norm"), heads), rotation, heads);
    x = d.Add(x, d.Linear(d.Attention(layer, {q, k, v}, heads), layer("attn_output"), d.width()));
    x = d.Add(x, d.Experts(d.RmsNorm(x, layer("ffn_norm")), layer, experts));
  }
  return d.Logits(d.RmsNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_qwen3moe() {
  static constexpr Architecture architecture = {.name = "qwen3moe", .doc = "Qwen3-MoE", .build = Build};
  return architecture;
}

}  // namespace quern::models
