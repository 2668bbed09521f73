// SmolLM3: a Llama in which every fourth layer does not turn (NoPE; Kazemnejad et al., arXiv:2305.19466).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  Value x = d.Embed();
  const Heads heads = d.ReadHeads();
  const Rotation rotation = d.ReadRotation(heads, PairStyle::kNeighbours);
  for (const Layer& layer : d.layers()) {
    auto [q, k, v] = d.Project(d.RmsNorm(x, layer("attn_norm")), layer, heads);
    if ((layer.index + 1) % 4 != 0) {
      q = d.Rotate(q, rotation, heads);
      k = d.Rotate(k, rotation, heads);
    }
    x = d.Add(x, d.Linear(d.Attention(layer, {q, k, v}, heads), layer("attn_output"), d.width()));
    x = d.Add(x, d.GatedFeedForward(d.RmsNorm(x, layer("ffn_norm")), layer, d.hidden(), "Silu"));
  }
  return d.Logits(d.RmsNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_smollm3() {
  static constexpr Architecture architecture = {.name = "smollm3", .doc = "SmolLM3", .build = Build};
  return architecture;
}

}  // namespace quern::models
