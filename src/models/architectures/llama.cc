// Llama 1 to 3.x, Mistral and Mixtral: pre-norm attention with grouped heads, then SwiGLU, of experts where there are
// any (Touvron et al., arXiv:2302.13971; Jiang et al., arXiv:2401.04088).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  Value x = d.Embed();
  const Heads heads = d.ReadHeads();
  const ExpertRule experts = d.ReadExperts();
  const Rotation rotation = d.ReadRotation(heads, PairStyle::kNeighbours);
  for (const Layer& layer : d.layers()) {
    x = d.Add(x, d.SelfAttention(d.RmsNorm(x, layer("attn_norm")), layer, heads, rotation));
    const Value n = d.RmsNorm(x, layer("ffn_norm"));
    x = d.Add(x, experts.experts > 0 ? d.Experts(n, layer, experts) : d.GatedFeedForward(n, layer, d.hidden(), "Silu"));
  }
  return d.Logits(d.RmsNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_llama() {
  static constexpr Architecture architecture = {
      .name = "llama", .doc = "Llama 1 to 3.x, Mistral, Mixtral", .build = Build};
  return architecture;
}

}  // namespace quern::models
