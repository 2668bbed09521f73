// OLMo 2 and 3: norms behind each part instead of before it, and over all of q and all of k (OLMo team,
// arXiv:2501.00656). In OLMo 3 three of four layers see a window and turn by unscaled positions.
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  Value x = d.Embed();
  const Heads heads = d.ReadHeads();
  const LocalLayers local = d.ReadLocalLayers(4);
  const Rotation whole = d.ReadRotation(heads, PairStyle::kHalves);
  const double local_base =
      d.numbers().FloatOr("rope.freq_base_swa", 1, 1e12, d.numbers().FloatOr("rope.freq_base", 1, 1e12, 10000));
  const Rotation near = local.window > 0 ? d.ReadRotation(heads, PairStyle::kHalves, local_base, "rope_local") : whole;
  for (const Layer& layer : d.layers()) {
    const Rotation& rotation = local.at(layer) ? near : whole;
    auto [q, k, v] = d.Project(x, layer, heads);
    q = d.Rotate(d.RmsNorm(q, layer("attn_q_norm")), rotation, heads);
    k = d.Rotate(d.RmsNorm(k, layer("attn_k_norm")), rotation, heads);
    const AttentionRule rule = {.window = local.at(layer) ? local.window : 0};
    const Value a = d.Linear(d.Attention(layer, {q, k, v}, heads, rule), layer("attn_output"), d.width());
    x = d.Add(x, d.RmsNorm(a, layer("post_attention_norm")));
    x = d.Add(x, d.RmsNorm(d.GatedFeedForward(x, layer, d.hidden(), "Silu"), layer("post_ffw_norm")));
  }
  return d.Logits(d.RmsNorm(d.Last(x), "output_norm"));
}

}  // namespace

const Architecture& Architecture_olmo2() {
  static constexpr Architecture architecture = {.name = "olmo2", .doc = "OLMo 2, OLMo 3", .build = Build};
  return architecture;
}

}  // namespace quern::models
