// Gemma 3: as Gemma 2 without capped attention, with normalised heads; five of six layers see a window and turn by a
// base of their own (Gemma team, arXiv:2503.19786).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  Value x = d.Scale(d.Embed(), std::sqrt(d.width()));
  const Heads heads = d.ReadHeads();
  const LocalLayers local = d.ReadLocalLayers(6);
  const double logit_cap = d.numbers().FloatOr("final_logit_softcapping", 0, 1e6, 0);
  // The 27B model, of 62 layers, scales queries by its width over its heads.
  const double usual = d.layers().size() == 62 ? 1 / std::sqrt(d.width() / heads.heads) : 0;
  const double scale = d.numbers().FloatOr("attention.scale", 0, 1e6, usual);
  const Rotation whole = d.ReadRotation(heads, PairStyle::kHalves);
  const double local_base = d.numbers().FloatOr("rope.freq_base_swa", 1, 1e12, 10000);
  const Rotation near = local.window > 0 ? d.ReadRotation(heads, PairStyle::kHalves, local_base, "rope_local") : whole;
  for (const Layer& layer : d.layers()) {
    const Rotation& rotation = local.at(layer) ? near : whole;
    auto [q, k, v] = d.Project(d.RmsNorm(x, layer("attn_norm")), layer, heads);
    q = d.Rotate(d.RmsNormHeads(q, layer("attn_q_norm"), heads), rotation, heads);
    k = d.Rotate(d.RmsNormHeads(k, layer("attn_k_norm"), heads), rotation, heads);
    const AttentionRule rule = {.window = local.at(layer) ? local.window : 0, .scale = scale};
    const Value a = d.Linear(d.Attention(layer, {q, k, v}, heads, rule), layer("attn_output"), d.width());
    x = d.Add(x, d.RmsNorm(a, layer("post_attention_norm")));
    const Value f = d.GatedFeedForward(d.RmsNorm(x, layer("ffn_norm")), layer, d.hidden(), "GeluApprox");
    x = d.Add(x, d.RmsNorm(f, layer("post_ffw_norm")));
  }
  return d.Softcap(d.Logits(d.RmsNorm(d.Last(x), "output_norm")), logit_cap);
}

}  // namespace

const Architecture& Architecture_gemma3() {
  static constexpr Architecture architecture = {.name = "gemma3", .doc = "Gemma 3", .build = Build};
  return architecture;
}

}  // namespace quern::models
