// Gemma 2: norms before and behind each part, capped logits, and every other layer sees a window (Gemma team,
// arXiv:2408.00118).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  Value x = d.Scale(d.Embed(), std::sqrt(d.width()));
  const Heads heads = d.ReadHeads();
  const LocalLayers local = d.ReadLocalLayers(2, 4096);
  const double attention_cap = d.numbers().FloatOr("attn_logit_softcapping", 0, 1e6, 50),
               logit_cap = d.numbers().FloatOr("final_logit_softcapping", 0, 1e6, 30);
  // The 27B model, of 46 layers, scales queries by its width over its heads.
  const double usual = d.layers().size() == 46 ? 1 / std::sqrt(d.width() / heads.heads) : 0;
  const double scale = d.numbers().FloatOr("attention.scale", 0, 1e6, usual);
  const Rotation rotation = d.ReadRotation(heads, PairStyle::kHalves);
  for (const Layer& layer : d.layers()) {
    const AttentionRule rule = {.window = local.at(layer) ? local.window : 0, .scale = scale, .softcap = attention_cap};
    const Value a = d.SelfAttention(d.RmsNorm(x, layer("attn_norm")), layer, heads, rotation, rule);
    x = d.Add(x, d.RmsNorm(a, layer("post_attention_norm")));
    const Value f = d.GatedFeedForward(d.RmsNorm(x, layer("ffn_norm")), layer, d.hidden(), "GeluApprox");
    x = d.Add(x, d.RmsNorm(f, layer("post_ffw_norm")));
  }
  return d.Softcap(d.Logits(d.RmsNorm(d.Last(x), "output_norm")), logit_cap);
}

}  // namespace

const Architecture& Architecture_gemma2() {
  static constexpr Architecture architecture = {.name = "gemma2", .doc = "Gemma 2", .build = Build};
  return architecture;
}

}  // namespace quern::models
