// GPT-NeoX and Pythia: attention and feed-forward side by side, each behind a LayerNorm of its own
// (Black et al., arXiv:2204.06745).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  Value x = d.Embed();
  const Heads heads = d.ReadHeads();
  const bool parallel = d.numbers().BoolOr("use_parallel_residual", true);
  const Rotation rotation = d.ReadRotation(heads, PairStyle::kHalves);
  for (const Layer& layer : d.layers()) {
    const Value a = d.SelfAttention(d.LayerNorm(x, layer("attn_norm")), layer, heads, rotation);
    const Value h = d.Add(x, a);
    const Value n = d.LayerNorm(parallel ? x : h, layer("ffn_norm"));
    x = d.Add(h, d.FeedForward(n, layer, d.hidden(), "GeluApprox"));
  }
  return d.Logits(d.LayerNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_gptneox() {
  static constexpr Architecture architecture = {.name = "gptneox", .doc = "GPT-NeoX, Pythia", .build = Build};
  return architecture;
}

}  // namespace quern::models
