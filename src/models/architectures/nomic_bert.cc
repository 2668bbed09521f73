// Nomic BERT: a BERT with rotation in place of learned positions and gated feed-forwards (Nussbaum et al.,
// arXiv:2402.01613).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  d.BeEncoder();
  Value x = d.Embed();
  if (d.tensors().Has("token_types.weight")) x = d.Add(x, d.TableRow("token_types", 0));
  x = d.LayerNorm(x, "token_embd_norm");
  const Heads heads = d.ReadHeads();
  const Rotation rotation = d.ReadRotation(heads, PairStyle::kHalves);
  for (const Layer& layer : d.layers()) {
    x = d.LayerNorm(d.Add(x, d.SelfAttention(x, layer, heads, rotation)), layer("attn_output_norm"));
    x = d.LayerNorm(d.Add(x, d.GatedFeedForward(x, layer, d.hidden(), "Silu")), layer("layer_output_norm"));
  }
  return x;
}

}  // namespace

const Architecture& Architecture_nomic_bert() {
  static constexpr Architecture architecture = {.name = "nomic-bert", .doc = "nomic-embed-text", .build = Build};
  return architecture;
}

}  // namespace quern::models
