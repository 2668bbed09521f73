// GPT-2: learned positions, LayerNorm before each part, biases everywhere (Radford et al., 2019).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  Value x = d.Embed();
  x = d.Add(x, d.PositionRows("position_embd"));
  const Heads heads = d.ReadHeads();
  for (const Layer& layer : d.layers()) {
    const Decoder::Projections rows = d.Project(d.LayerNorm(x, layer("attn_norm")), layer, heads);
    x = d.Add(x, d.Linear(d.Attention(layer, rows, heads), layer("attn_output"), d.width()));
    x = d.Add(x, d.FeedForward(d.LayerNorm(x, layer("ffn_norm")), layer, d.hidden(), "GeluApprox"));
  }
  return d.Logits(d.LayerNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_gpt2() {
  static constexpr Architecture architecture = {.name = "gpt2", .doc = "GPT-2", .build = Build};
  return architecture;
}

}  // namespace quern::models
