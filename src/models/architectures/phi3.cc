// Phi-3 and Phi-4: a Llama with q, k and v in one tensor and gate and up in another, and rotation by longrope
// (Abdin et al., arXiv:2404.14219).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  Value x = d.Embed();
  const Heads heads = d.ReadHeads();
  const Rotation rotation = d.ReadRotation(heads, PairStyle::kHalves);
  const LocalLayers local = d.ReadLocalLayers(1);
  for (const Layer& layer : d.layers()) {
    const Value a = d.RmsNorm(x, layer("attn_norm"));
    x = d.Add(x, d.SelfAttention(a, layer, heads, rotation, {.window = local.of(layer)}));
    x = d.Add(x, d.FusedGatedFeedForward(d.RmsNorm(x, layer("ffn_norm")), layer, d.hidden(), "Silu"));
  }
  return d.Logits(d.RmsNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_phi3() {
  static constexpr Architecture architecture = {.name = "phi3", .doc = "Phi-3, Phi-3.5, Phi-4", .build = Build};
  return architecture;
}

}  // namespace quern::models
