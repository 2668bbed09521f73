// BERT as an encoder of texts: learned positions, a LayerNorm behind each part (Devlin et al., arXiv:1810.04805). Every
// token is of the first of the two kinds of sentences.
#include "models/architecture.h"

namespace quern::models {
namespace {

Value Build(Decoder& d) {
  d.BeEncoder();
  Value x = d.Embed();
  if (d.tensors().Has("token_types.weight")) x = d.Add(x, d.TableRow("token_types", 0));
  x = d.LayerNorm(d.Add(x, d.PositionRows("position_embd")), "token_embd_norm");
  const Heads heads = d.ReadHeads();
  // GGUF files say nothing of it, and are computed as llama.cpp does.
  const char* const activation = d.numbers().StringOr("hidden_act", "") == "gelu" ? "Gelu" : "GeluApprox";
  for (const Layer& layer : d.layers()) {
    const Value a = d.Attention(layer, d.Project(x, layer, heads), heads);
    x = d.LayerNorm(d.Add(x, d.Linear(a, layer("attn_output"), d.width())), layer("attn_output_norm"));
    const Value f = d.FeedForward(x, layer, d.hidden(), activation);
    x = d.LayerNorm(d.Add(x, f), layer("layer_output_norm"));
  }
  return x;
}

}  // namespace

const Architecture& Architecture_bert() {
  static constexpr Architecture architecture = {.name = "bert", .doc = "BERT, MiniLM, BGE, E5", .build = Build};
  return architecture;
}

}  // namespace quern::models
