// Granite 3: a Llama whose embeddings, residuals, attention and logits are scaled, with experts where there are any
// (Granite team, 2024).
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  const double embedding = d.numbers().FloatOr("embedding_scale", 0, 1e6, 1),
               residual = d.numbers().FloatOr("residual_scale", 0, 1e6, 1),
               attention = d.numbers().FloatOr("attention.scale", 0, 1e6, 0),
               logits = d.numbers().Float("logit_scale", 1e-6, 1e6);
  Value x = d.Scale(d.Embed(), embedding == 0 ? 1 : embedding);
  const Heads heads = d.ReadHeads();
  const ExpertRule experts = d.ReadExperts();
  const Rotation rotation = d.ReadRotation(heads, PairStyle::kNeighbours);
  auto add = [&](Value h, Value part) { return d.Add(h, d.Scale(part, residual == 0 ? 1 : residual)); };
  for (const Layer& layer : d.layers()) {
    const Value a = d.RmsNorm(x, layer("attn_norm"));
    x = add(x, d.SelfAttention(a, layer, heads, rotation, {.scale = attention}));
    const Value n = d.RmsNorm(x, layer("ffn_norm"));
    x = add(x, experts.experts > 0 ? d.Experts(n, layer, experts) : d.GatedFeedForward(n, layer, d.hidden(), "Silu"));
  }
  return d.Scale(d.Logits(d.RmsNorm(d.Last(x), "output_norm")), 1 / logits);
}

}  // namespace

const Architecture& Architecture_granite() {
  static constexpr Architecture architecture = {.name = "granite", .doc = "Granite 3", .build = Build};
  return architecture;
}

}  // namespace quern::models
