// StarCoder2: LayerNorm, biases, grouped heads with half-split rotation and a plain feed-forward
// (Lozhkov et al., arXiv:2402.19173).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  Value x = d.Embed();
  const Heads heads = d.ReadHeads();
  const Rotation rotation = d.ReadRotation(heads, PairStyle::kHalves);
  const LocalLayers local = d.ReadLocalLayers(1);
  for (const Layer& layer : d.layers()) {
    const Value a = d.LayerNorm(x, layer("attn_norm"));
    x = d.Add(x, d.SelfAttention(a, layer, heads, rotation, {.window = local.of(layer)}));
    x = d.Add(x, d.FeedForward(d.LayerNorm(x, layer("ffn_norm")), layer, d.hidden(), "GeluApprox"));
  }
  return d.Logits(d.LayerNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_starcoder2() {
  static constexpr Architecture architecture = {.name = "starcoder2", .doc = "StarCoder2", .build = Build};
  return architecture;
}

}  // namespace quern::models
