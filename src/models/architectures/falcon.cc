// Falcon: attention and feed-forward side by side behind one LayerNorm, or two in the 40B model
// (Almazrouei et al., arXiv:2311.16867).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  Value x = d.Embed();
  const Heads heads = d.ReadHeads();
  const Rotation rotation = d.ReadRotation(heads, PairStyle::kHalves);
  for (const Layer& layer : d.layers()) {
    const Value n = d.LayerNorm(x, layer("attn_norm"));
    const bool two = d.tensors().Has(layer("attn_norm_2.weight"));
    const Value a = d.SelfAttention(two ? d.LayerNorm(x, layer("attn_norm_2")) : n, layer, heads, rotation);
    x = d.Add(x, d.Add(a, d.FeedForward(n, layer, d.hidden(), "GeluApprox")));
  }
  return d.Logits(d.LayerNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_falcon() {
  static constexpr Architecture architecture = {.name = "falcon", .doc = "Falcon 7B, 40B", .build = Build};
  return architecture;
}

}  // namespace quern::models
