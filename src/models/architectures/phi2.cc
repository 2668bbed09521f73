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
    auto [q, k, v] = d.Project(n, layer, heads);
    q = d.Rotate(q, rotation, heads);
    k = d.Rotate(k, rotation, heads);
    const Value a = d.Linear(d.Attention(layer, {q, k, v}, heads), layer("attn_output"), d.width());
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
