// The parts of a Decoder that make attention: projections, rotation, the cache.

#include "models/decoder.h"

namespace quern::models {

Decoder::Projections Decoder::Project(Value x, const Layer& layer, const Heads& heads) {
  if (!tensors_.Has(layer("attn_qkv") + ".weight")) {
    return {Linear(x, layer("attn_q"), heads.query()), Linear(x, layer("attn_k"), heads.key()),
            Linear(x, layer("attn_v"), heads.key())};
  }
  const Value all = Linear(x, layer("attn_qkv"), heads.query() + 2 * heads.key());
  return {Columns(all, 0, heads.query()), Columns(all, heads.query(), heads.key()),
          Columns(all, heads.query() + heads.key(), heads.key())};
}

Value Decoder::Rotate(Value x, const Rotation& rotation, const Heads& heads) {
  if (!graph_.status().ok()) return {};
  return graph_.Block("RoPE", {x, rotation.cosine, rotation.sine, positions_},
                      {{"head_dim", heads.head_dim},
                       {"n_rot", rotation.n_rot},
                       {"style", std::string(rotation.style == PairStyle::kHalves ? "neox" : "gptj")}},
                      spec_.module.nodes()[x.node].label + "_rope");
}

Value Decoder::Cached(const Layer& layer, const char* name, Value rows, const Heads& heads) {
  if (!graph_.status().ok()) return {};
  const std::string input = absl::StrFormat("layers.%d.%s", layer.index, name),
                    label = absl::StrFormat("layers.%d/attention/%s", layer.index, name);
  const Extent kv_heads(heads.kv_heads), head_dim(heads.head_dim), all_rows = this->rows(), seen = past() + all_rows;
  const int64_t room = many() ? room_.block * room_.blocks : spec_.context;
  const Value cache = graph_.Input(input, {spec_.kv_dtype, {Extent(room), kv_heads, head_dim}});
  if (spec_.kv_dtype != DType::kF32) rows = graph_.Mir("Cast", {rows}, {{"to", spec_.kv_dtype}}, label);
  rows = graph_.Mir("Reshape", {rows}, {{"shape", std::vector<Extent>{all_rows, kv_heads, head_dim}}}, label);
  std::vector<Value> operands = {cache, rows};
  hir::Attributes where = {{"axis", int64_t{0}}};
  if (many()) {
    operands.push_back(index_);
  } else {
    where.Set("start", std::vector<Extent>{past()});
  }
  const Value updated = graph_.Mir("Update", std::move(operands), std::move(where), label);
  states_.push_back(updated);
  spec_.module.donations.push_back({static_cast<int>(states_.size()), input});
  std::vector<Extent> dims = {Extent(room_.blocks), Extent(room_.block), Extent(heads.key())};
  if (many()) return graph_.Mir("Reshape", {updated}, {{"shape", std::move(dims)}}, label);
  const Value all = graph_.Mir(
      "Narrow", {updated},
      {{"axis", int64_t{0}}, {"start", std::vector<Extent>{0}}, {"length", std::vector<Extent>{seen}}}, label);
  dims = {Extent(1), seen, Extent(heads.key())};
  return graph_.Mir("Reshape", {all}, {{"shape", std::move(dims)}}, label);
}

Value Decoder::Attention(const Layer& layer, const Projections& rows, const Heads& heads, const AttentionRule& rule) {
  const std::string label = absl::StrFormat("layers.%d/attention", layer.index);
  auto batch = [&](Value value, int64_t width) {
    const std::vector<Extent> dims = {Extent(1), this->rows(), Extent(width)};
    return graph_.Mir("Reshape", {value}, {{"shape", dims}}, label);
  };
  const auto seen = [&](Value own, const char* cache) {
    return spec_.encoder ? batch(own, heads.key()) : Cached(layer, cache, own, heads);
  };
  const Value k = seen(rows.k, "k_cache"), v = rows.v.absent() ? k : seen(rows.v, "v_cache");
  const bool sliding = rule.window > 0 && rule.window < spec_.context;
  const char* mask = spec_.encoder ? "none" : sliding ? "sliding" : "causal";
  const Value a = graph_.Block("Attention", {batch(rows.q, heads.query()), k, v, {}, starts_, lengths_, blocks_},
                               {{"heads", heads.heads},
                                {"kv_heads", heads.kv_heads},
                                {"head_dim", heads.head_dim},
                                {"mask", std::string(mask)},
                                {"window", sliding ? rule.window - 1 : int64_t{0}},
                                {"scale", rule.scale},
                                {"softcap", rule.softcap}},
                               label);
  const std::vector<Extent> dims = {this->rows(), Extent(heads.query())};
  return graph_.Mir("Reshape", {a}, {{"shape", dims}}, label);
}

Value Decoder::SelfAttention(Value x, const Layer& layer, const Heads& heads, const Rotation& rotation,
                             const AttentionRule& rule) {
  Projections rows = Project(x, layer, heads);
  rows.q = Rotate(rows.q, rotation, heads);
  rows.k = Rotate(rows.k, rotation, heads);
  return Linear(Attention(layer, rows, heads, rule), layer("attn_output"), width());
}

}  // namespace quern::models
