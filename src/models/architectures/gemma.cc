// Gemma: a Llama with tied embeddings, scaled by the root of the width, and gated GELU (Gemma team,
// arXiv:2403.08295).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  Value x = d.Scale(d.Embed(), std::sqrt(d.width()));
  const Heads heads = d.ReadHeads();
  const Rotation rotation = d.ReadRotation(heads, PairStyle::kHalves);
  for (const Layer& layer : d.layers()) {
    x = d.Add(x, d.SelfAttention(d.RmsNorm(x, layer("attn_norm")), layer, heads, rotation));
    x = d.Add(x, d.GatedFeedForward(d.RmsNorm(x, layer("ffn_norm")), layer, d.hidden(), "GeluApprox"));
  }
  return d.Logits(d.RmsNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_gemma() {
  static constexpr Architecture architecture = {.name = "gemma", .doc = "Gemma", .build = Build};
  return architecture;
}

}  // namespace quern::models
