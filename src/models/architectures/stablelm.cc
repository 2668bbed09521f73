// StableLM: a Llama with LayerNorm in which a part of each head turns; StableLM 2 12B normalises heads and has
// attention and feed-forward side by side (Bellagente et al., arXiv:2402.17834).
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
    if (d.tensors().Has(layer("attn_q_norm.weight"))) q = d.LayerNormHeads(q, layer("attn_q_norm"), heads);
    if (d.tensors().Has(layer("attn_k_norm.weight"))) k = d.LayerNormHeads(k, layer("attn_k_norm"), heads);
    q = d.Rotate(q, rotation, heads);
    k = d.Rotate(k, rotation, heads);
    x = d.Add(x, d.Linear(d.Attention(layer, {q, k, v}, heads), layer("attn_output"), d.width()));
    const bool parallel = !d.tensors().Has(layer("ffn_norm.weight"));
    x = d.Add(x, d.GatedFeedForward(parallel ? n : d.LayerNorm(x, layer("ffn_norm")), layer, d.hidden(), "Silu"));
  }
  return d.Logits(d.LayerNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_stablelm() {
  static constexpr Architecture architecture = {.name = "stablelm", .doc = "StableLM 3B, StableLM 2", .build = Build};
  return architecture;
}

}  // namespace quern::models
