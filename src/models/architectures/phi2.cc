// Phi-1 to Phi-2: attention and feed-forward side by side behind one LayerNorm, and a part of each head turns
// (Li et al., arXiv:2309.05463).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  Value x = d.Embed();
  const Heads heads = d.ReadHeads();
  const Rotation rotation = d.ReadRotation(heads, PairStyle::kHalves);
  for (const Layer& layer : d.layers()) {
    const Value n = d.LayerNorm(x, layer("attn_norm"));
    const Value a = d.SelfAttention(n, layer, heads, rotation);
    x = d.Add(x, d.Add(a, d.FeedForward(n, layer, d.hidden(), "GeluApprox")));
  }
  return d.Logits(d.LayerNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_phi2() {
  static constexpr Architecture architecture = {.name = "phi2", .doc = "Phi-1, Phi-1.5, Phi-2", .build = Build};
  return architecture;
}

}  // namespace quern::models
