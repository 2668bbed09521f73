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
  const LocalLayers local = d.ReadLocalLayers(1);
  for (const Layer& layer : d.layers()) {
    const Value a = d.RmsNorm(x, layer("attn_norm"));
    x = d.Add(x, d.SelfAttention(a, layer, heads, rotation, {.window = local.of(layer)}));
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
