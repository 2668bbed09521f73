// Qwen2 and 2.5: a Llama with biases of q, k and v and half-split rotation (Yang et al., arXiv:2407.10671).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  Value x = d.Embed();
  const Heads heads = d.ReadHeads();
  const Rotation rotation = d.ReadRotation(heads, PairStyle::kHalves);
  for (const Layer& layer : d.layers()) {
    x = d.Add(x, d.SelfAttention(d.RmsNorm(x, layer("attn_norm")), layer, heads, rotation));
    x = d.Add(x, d.GatedFeedForward(d.RmsNorm(x, layer("ffn_norm")), layer, d.hidden(), "Silu"));
  }
  return d.Logits(d.RmsNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_qwen2() {
  static constexpr Architecture architecture = {.name = "qwen2", .doc = "Qwen2, Qwen2.5", .build = Build};
  return architecture;
}

}  // namespace quern::models
