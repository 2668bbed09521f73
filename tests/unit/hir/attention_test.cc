// Attention and the decoder block: masks, softcap, grouped heads, the cache; against plain double code.

#include <gmock/gmock.h>

#include <algorithm>

#include "random_module.h"

namespace quern::hir {
namespace {

struct Sizes {
  int64_t batch = 2, heads = 6, kv_heads = 2, head_dim = 5, sq = 3, sk = 7;
};

// Scores, then softmax, then values: one element of the packed result.
double Plain(const Sizes& z, const ir::Feeds& feeds, const AttentionOptions& o, int64_t b, int64_t h, int64_t i,
             int64_t d) {
  auto at = [](const ir::RefTensor& t, int64_t b, int64_t s, int64_t c) {
    return t.data[(b * t.dims[1] + s) * t.dims[2] + c];
  };
  const ir::RefTensor &q = feeds.at("q"), &k = feeds.at("k"), &v = feeds.at("v");
  const int64_t kv = h * z.kv_heads / z.heads, now = i + z.sk - z.sq;
  double sum = 0, result = 0;
  for (int64_t j = 0; j < z.sk; ++j) {
    if ((o.mask == "causal" || o.mask == "sliding") && j > now) continue;
    if (o.mask == "sliding" && j < now - o.window) continue;
    if (o.mask == "custom" && feeds.at("mask").data[b * z.sk + j] < 0.5) continue;
    double s = 0;
    for (int64_t e = 0; e < z.head_dim; ++e) s += at(q, b, i, h * z.head_dim + e) * at(k, b, j, kv * z.head_dim + e);
    s *= o.scale == 0 ? 1 / std::sqrt(static_cast<double>(z.head_dim)) : o.scale;
    if (o.softcap > 0) s = o.softcap * std::tanh(s / o.softcap);
    if (o.mask == "bias") s += feeds.at("mask").data[(h * z.sq + i) * z.sk + j];
    sum += std::exp(s);
    result += std::exp(s) * at(v, b, j, kv * z.head_dim + d);
  }
  return sum == 0 ? 0 : result / sum;
}

// Builds packed attention, compares every element with Plain, and returns the result.
ir::RefTensor Check(const Sizes& z, AttentionOptions o) {
  Module m;
  Builder b(m);
  o.heads = z.heads;
  o.kv_heads = z.kv_heads;
  o.head_dim = z.head_dim;
  const Value q = b.Input("q", F32({z.batch, z.sq, z.heads * z.head_dim}));
  const Value k = b.Input("k", F32({z.batch, z.sk, z.kv_heads * z.head_dim})),
              v = b.Input("v", F32({z.batch, z.sk, z.kv_heads * z.head_dim}));
  if (o.mask == "custom") o.mask_value = b.Input("mask", {DType::kBool, {z.batch, z.sk}});
  if (o.mask == "bias") o.mask_value = b.Input("mask", F32({1, z.heads, z.sq, z.sk}));
  m.outputs = {b.Attention(q, k, v, o)};
  EXPECT_TRUE(b.status().ok()) << b.status();
  if (!b.status().ok()) return {};
  const std::vector<ir::RefTensor> out = ExpectPoliciesAgree(m);
  if (out.empty()) return {};
  const ir::Feeds feeds = RandomFeeds(*Lower(m), {});
  for (int64_t batch = 0; batch < z.batch; ++batch) {
    for (int64_t i = 0; i < z.sq; ++i) {
      for (int64_t h = 0; h < z.heads; ++h) {
        for (int64_t d = 0; d < z.head_dim; ++d) {
          EXPECT_NEAR(out[0].data[((batch * z.sq + i) * z.heads + h) * z.head_dim + d],
                      Plain(z, feeds, o, batch, h, i, d), 1e-12)
              << o.mask << " at " << batch << " " << i << " " << h << " " << d;
        }
      }
    }
  }
  return out[0];
}

TEST(Attention, EveryMask) {
  for (const char* mask : {"none", "causal", "sliding", "custom", "bias"}) {
    AttentionOptions o;
    o.mask = mask;
    o.window = 2;
    Check({}, o);
  }
}

TEST(Attention, ScaleAndSoftcapAreHonoured) {
  AttentionOptions plain, scaled, capped;
  scaled.scale = 0.7;
  capped.softcap = 0.05;
  const ir::RefTensor a = Check({}, plain), b = Check({}, scaled), c = Check({}, capped);
  EXPECT_GT(LargestDifference(a, b), 1e-3);
  EXPECT_GT(LargestDifference(a, c), 1e-3);
}

TEST(Attention, AWindowOfWSeesWPlusOneKeys) {
  AttentionOptions o;
  o.mask = "sliding";
  o.window = 0;  // only its own key: the value itself
  const Sizes z{.batch = 1, .heads = 1, .kv_heads = 1, .head_dim = 3, .sq = 4, .sk = 4};
  const ir::RefTensor got = Check(z, o);
  Module m;
  Builder b(m);
  for (const char* name : {"q", "k", "v"}) b.Input(name, F32({1, 4, 3}));
  EXPECT_EQ(got.data, RandomFeeds(*Lower(m), {}).at("v").data);
}

TEST(Attention, AFullyMaskedRowIsZero) {
  Module m;
  Builder b(m);
  AttentionOptions o{.heads = 2,
                     .kv_heads = 1,
                     .head_dim = 3,
                     .mask = "custom",
                     .mask_value = b.Input("mask", {DType::kBool, {2, 5}}),
                     .window = 0,
                     .scale = 0,
                     .softcap = 0,
                     .layout = "packed",
                     .label = ""};
  m.outputs = {
      b.Attention(b.Input("q", F32({2, 4, 6})), b.Input("k", F32({2, 5, 3})), b.Input("v", F32({2, 5, 3})), o)};
  ASSERT_TRUE(b.status().ok()) << b.status();
  ir::Feeds feeds = RandomFeeds(*Lower(m), {});
  feeds["mask"].data = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
  const ir::RefTensor out = RunModule(m, {}, feeds)[0];
  for (int i = 0; i < 24; ++i) EXPECT_EQ(out.data[i], 0) << i;
  EXPECT_NE(out.data[24], 0);
}

// Attention of f64 has no kernel and is spelled out; of f32 it stays one node, though there is such a form of it.
TEST(Attention, IsSpelledOutWhereThereIsNoKernel) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const DType mask : {DType::kBool, DType::kI32, DType::kF32, DType::kF64}) {
      SCOPED_TRACE(std::string(Name(dtype)) + " with a mask of " + std::string(Name(mask)));
      Module m;
      Builder b(m);
      AttentionOptions o;
      o.heads = 2;
      o.kv_heads = 1;
      o.head_dim = 3;
      o.mask = "custom";
      o.mask_value = b.Input("mask", {mask, {2, 5}});
      m.outputs = {b.Attention(b.Input("q", {dtype, {2, 4, 6}}), b.Input("k", {dtype, {2, 5, 3}}),
                               b.Input("v", {dtype, {2, 5, 3}}), o)};
      ASSERT_TRUE(b.status().ok()) << b.status();
      ExpectPoliciesAgree(m);
      m.policy = FusionPolicy::kFusable;
      const auto graph = Lower(m);
      ASSERT_TRUE(graph.ok()) << graph.status();
      const auto whole = std::count_if(graph->nodes().begin(), graph->nodes().end(), [](const ir::Node& node) {
        return std::string_view(node.op->name) == "Attention";
      });
      EXPECT_EQ(whole, dtype == DType::kF32 ? 1 : 0);
    }
  }
}

TEST(Attention, LayoutsAgree) {
  // The same numbers laid out three ways.
  std::vector<ir::RefTensor> results;
  for (const char* layout : {"packed", "bshd", "bhsd"}) {
    Module m;
    Builder b(m);
    auto operand = [&](const char* name, int64_t s, int64_t heads) {
      const Value packed = b.Input(name, F32({2, s, heads * 5}));
      if (std::string(layout) == "packed") return packed;
      const Value split = b.Reshape(packed, {2, s, heads, 5});
      return std::string(layout) == "bshd" ? split : b.Transpose(split, {0, 2, 1, 3});
    };
    AttentionOptions o;
    o.heads = 4;
    o.kv_heads = 2;
    o.head_dim = 5;
    o.mask = "causal";
    o.layout = layout;
    Value y = b.Attention(operand("q", 3, 4), operand("k", 7, 2), operand("v", 7, 2), o);
    if (std::string(layout) == "bhsd") y = b.Transpose(y, {0, 2, 1, 3});
    m.outputs = {b.Reshape(y, {2, 3, 20})};
    ASSERT_TRUE(b.status().ok()) << b.status();
    results.push_back(ExpectPoliciesAgree(m)[0]);
  }
  EXPECT_LT(LargestDifference(results[0], results[1]), 1e-12);
  EXPECT_LT(LargestDifference(results[0], results[2]), 1e-12);
}

// A decoder block over x of the given extents, with or without caches; every weight a Param of its own. `slot`: three
// sequences at once, in caches with slots of so many rows, or, 0, with a part for each.
struct Decoder {
  Module m;
  std::vector<Value> results;

  Decoder(std::vector<Extent> x_dims, bool cached, const std::string& layout, DType cache_dtype,
          const char* block = "LlamaDecoderBlock", int64_t slot = -1) {
    m.symbols = {{"SEQ", {1, 13}}, {"PAST_SEQ", {0, 16}}};
    Builder b(m);
    const Extent s = x_dims[x_dims.size() - 2];
    auto weight = [&](const char* name, int64_t k, int64_t n) {
      return b.Param(name, F32(layout == "nk" ? std::vector<Extent>{n, k} : std::vector<Extent>{k, n}));
    };
    std::vector<Value> in = {b.Input("x", F32(x_dims)), b.Param("ln1_g", F32({7})), b.Param("ln1_b", F32({7})),
                             weight("q_w", 7, 24),      weight("k_w", 7, 8),        weight("v_w", 7, 8),
                             weight("o_w", 24, 7),      b.Param("ln2_g", F32({7})), {},
                             weight("gate_w", 7, 11),   weight("up_w", 7, 11),      weight("down_w", 11, 7)};
    for (const char* table : {"cos", "sin"}) {
      in.push_back(slot >= 0 ? b.Param(table, F32({31, 2}))
                   : cached  ? b.Narrow(b.Param(table, F32({31, 2})), 0, Extent::Symbol("PAST_SEQ"), s)
                             : b.Narrow(b.Param(table, F32({31, 2})), 0, 0, s));
    }
    in.push_back({});
    if (cached) {
      const int64_t rows = slot < 0 ? 29 : 60;
      for (const char* name : {"k_cache", "v_cache"}) in.push_back(b.Input(name, {cache_dtype, {rows, 2, 4}}));
    }
    auto integers = [&](const char* name, std::vector<Extent> dims) {
      in.push_back(b.Input(name, {DType::kI32, std::move(dims)}));
    };
    if (slot >= 0) {
      integers("index", {s});
      integers("positions", {s});
      integers("q_start", {4});
      integers("kv_len", {3});
      if (slot > 0) integers("blocks", {3, 4});
    }
    results = b.Results(block, in,
                        {{"heads", int64_t{6}},
                         {"kv_heads", int64_t{2}},
                         {"head_dim", int64_t{4}},
                         {"rope_style", std::string("gptj")},
                         {"weight_layout", layout},
                         {"slot", std::max<int64_t>(slot, 0)},
                         {"eps", 1e-4}},
                        "layers.3");
    m.outputs = results;
    if (cached) m.donations = {{1, "k_cache"}, {2, "v_cache"}};
    EXPECT_TRUE(b.status().ok()) << b.status();
  }
};

TEST(DecoderBlock, PoliciesAgreeInEveryForm) {
  const Extent seq = Extent::Symbol("SEQ");
  for (const char* layout : {"kn", "nk"}) {
    ExpectPoliciesAgree(Decoder({2, 5, 7}, false, layout, DType::kF32).m);
    ExpectPoliciesAgree(Decoder({seq, 7}, false, layout, DType::kF32).m, {{"SEQ", 5}});
    ExpectPoliciesAgree(Decoder({seq, 7}, true, layout, DType::kF16).m, {{"SEQ", 5}, {"PAST_SEQ", 3}});
    ExpectPoliciesAgree(Decoder({1, seq, 7}, true, layout, DType::kF32).m, {{"SEQ", 1}, {"PAST_SEQ", 11}});
    ExpectPoliciesAgree(Decoder({1, seq, 7}, true, layout, DType::kBF16).m, {{"SEQ", 3}, {"PAST_SEQ", 5}});
  }
}

TEST(DecoderBlock, StepsThroughACacheEqualTheWholeSequence) {
  const Extent seq = Extent::Symbol("SEQ");
  const Decoder whole({seq, 7}, false, "nk", DType::kF32), cached({seq, 7}, true, "nk", DType::kF32);
  const ir::Feeds all = RandomFeeds(*Lower(whole.m), {{"SEQ", 8}});
  const ir::RefTensor want = RunModule(whole.m, {{"SEQ", 8}}, all)[0];
  ir::Feeds feeds = all;
  for (const char* cache : {"k_cache", "v_cache"})
    feeds[cache] = {DType::kF32, {29, 2, 4}, std::vector<double>(29 * 8, 1e3)};
  int64_t past = 0;
  for (const int64_t step : {3, 1, 4}) {
    const auto begin = all.at("x").data.begin() + past * 7;
    feeds["x"] = {DType::kF32, {step, 7}, std::vector<double>(begin, begin + step * 7)};
    const std::vector<ir::RefTensor> out = RunModule(cached.m, {{"SEQ", step}, {"PAST_SEQ", past}}, feeds);
    ASSERT_EQ(out.size(), 3u);
    for (int64_t i = 0; i < step * 7; ++i)
      EXPECT_NEAR(out[0].data[i], want.data[past * 7 + i], 1e-12) << "step at " << past;
    feeds["k_cache"] = out[1];
    feeds["v_cache"] = out[2];
    past += step;
  }
}

// Prompts in parts beside single tokens; each sequence gets what it gets alone.
TEST(DecoderBlock, SequencesInOneStepEqualEachAlone) {
  const Extent seq = Extent::Symbol("SEQ");
  const Decoder alone({seq, 7}, false, "nk", DType::kF32);
  const ir::Feeds weights = RandomFeeds(*Lower(alone.m), {{"SEQ", 8}});
  const int64_t lengths[] = {7, 5, 11};
  std::vector<ir::RefTensor> inputs, wanted;
  for (int s = 0; s < 3; ++s) {
    ir::RefTensor x{DType::kF32, {lengths[s], 7}, {}};
    for (int64_t i = 0; i < lengths[s] * 7; ++i) x.data.push_back(std::sin(static_cast<double>(i * (s + 2))));
    ir::Feeds feeds = weights;
    feeds["x"] = x;
    wanted.push_back(RunModule(alone.m, {{"SEQ", lengths[s]}}, feeds)[0]);
    inputs.push_back(std::move(x));
  }
  const std::vector<int64_t> steps[] = {{3, 0, 4}, {1, 2, 6}, {1, 1, 1}, {2, 2, 0}};  // rows of each sequence
  const int64_t slots[3][4] = {{9, 1, 4, 0}, {3, 11, 2, 6}, {10, 5, 8, 7}};
  for (const int64_t slot : {0, 5}) {
    const Decoder together({seq, 7}, true, "nk", DType::kF32, "LlamaDecoderBlock", slot);
    ir::Feeds feeds = weights;
    for (const char* cache : {"k_cache", "v_cache"})
      feeds[cache] = {DType::kF32, {60, 2, 4}, std::vector<double>(60 * 8, NAN)};  // what is not written is not read
    auto integers = [&](const char* name, std::vector<int64_t> dims, std::vector<int64_t> values) {
      feeds[name] = {DType::kI32, std::move(dims), {}, std::move(values)};
    };
    if (slot > 0) {
      std::vector<int64_t> blocks;
      for (const auto& row : slots) blocks.insert(blocks.end(), std::begin(row), std::end(row));
      integers("blocks", {3, 4}, std::move(blocks));
    }
    int64_t past[3] = {};
    for (const std::vector<int64_t>& step : steps) {
      std::vector<int64_t> index, positions, q_start = {0}, kv_len;
      ir::RefTensor x{DType::kF32, {0, 7}, {}};
      for (int s = 0; s < 3; ++s) {
        for (int64_t p = past[s]; p < past[s] + step[s]; ++p) {
          index.push_back(slot > 0 ? slots[s][p / slot] * slot + p % slot : s * 20 + p);
          positions.push_back(p);
          for (int64_t c = 0; c < 7; ++c) x.data.push_back(inputs[s].data[p * 7 + c]);
        }
        q_start.push_back(static_cast<int64_t>(index.size()));
        kv_len.push_back(past[s] + step[s]);
      }
      const int64_t rows = q_start.back();
      x.dims[0] = rows;
      feeds["x"] = x;
      integers("index", {rows}, index);
      integers("positions", {rows}, positions);
      integers("q_start", {4}, q_start);
      integers("kv_len", {3}, kv_len);
      const std::vector<ir::RefTensor> out = RunModule(together.m, {{"SEQ", rows}, {"PAST_SEQ", 0}}, feeds);
      ASSERT_EQ(out.size(), 3u);
      for (int s = 0; s < 3; ++s) {
        for (int64_t i = 0; i < step[s] * 7; ++i)
          EXPECT_NEAR(out[0].data[q_start[s] * 7 + i], wanted[s].data[past[s] * 7 + i], 1e-12)
              << "sequence " << s << " at " << past[s] << ", slots of " << slot;
        past[s] += step[s];
      }
      feeds["k_cache"] = out[1];
      feeds["v_cache"] = out[2];
    }
  }
}

TEST(DecoderBlock, LabelsNameTheParts) {
  const Decoder decoder({Extent::Symbol("SEQ"), 7}, true, "nk", DType::kF16);
  const auto graph = Lower(decoder.m);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<std::string> labels;
  for (const ir::Node& node : graph->nodes()) {
    const std::string& label = graph->origins()[node.origin].label;
    if (label.starts_with("layers.3") && (labels.empty() || labels.back() != label)) labels.push_back(label);
  }
  EXPECT_THAT(labels,
              ::testing::ElementsAre("layers.3/attention_norm", "layers.3/attention/q", "layers.3/attention/k",
                                     "layers.3/attention/v", "layers.3/attention/q_rope", "layers.3/attention/k_rope",
                                     "layers.3/attention/k_cache", "layers.3/attention/v_cache", "layers.3/attention",
                                     "layers.3/attention/o", "layers.3/ffn_norm", "layers.3/ffn/gate",
                                     "layers.3/ffn/up", "layers.3/ffn", "layers.3/ffn/down", "layers.3/ffn"));
}

TEST(DecoderBlock, AttributesReachTheParts) {
  Module m;
  Builder b(m);
  auto param = [&](const char* name, std::vector<Extent> dims) { return b.Param(name, F32(std::move(dims))); };
  m.outputs = {
      b.Block("LlamaDecoderBlock",
              {b.Input("x", F32({2, 3, 5})), param("n1", {5}), param("b1", {5}), param("q", {5, 12}),
               param("k", {5, 6}), param("v", {5, 6}), param("o", {12, 5}), param("n2", {5}), param("b2", {5}),
               param("g", {5, 7}), param("u", {5, 7}), param("d", {7, 5}), param("c", {3, 2}), param("s", {3, 2})},
              {{"heads", int64_t{2}},
               {"kv_heads", int64_t{1}},
               {"head_dim", int64_t{6}},
               {"mask", std::string("sliding")},
               {"window", int64_t{1}},
               {"scale", 0.3},
               {"softcap", 7.0},
               {"n_rot", int64_t{4}},
               {"rope_style", std::string("gptj")},
               {"eps", 1e-3}})};
  ASSERT_TRUE(b.status().ok()) << b.status();
  const auto graph = Lower(m);
  ASSERT_TRUE(graph.ok()) << graph.status();
  int attentions = 0, ropes = 0, norms = 0;
  for (const ir::Node& node : graph->nodes()) {
    const std::string_view op = node.op->name;
    if (op == "Attention") {
      ++attentions;
      EXPECT_EQ(node.attributes.String("mask"), "sliding");
      EXPECT_EQ(node.attributes.Int("window"), 1);
      EXPECT_EQ(node.attributes.Float("scale"), 0.3);
      EXPECT_EQ(node.attributes.Float("softcap"), 7);
    } else if (op == "Rope") {
      ++ropes;
      EXPECT_EQ(node.attributes.Int("n_rot"), 4);
      EXPECT_EQ(node.attributes.String("style"), "gptj");
    } else if (op == "RmsNorm" || op == "FusedResidualRmsNorm") {
      ++norms;
      EXPECT_EQ(node.attributes.Float("eps"), 1e-3);
      EXPECT_EQ(node.inputs.size(), op == "RmsNorm" ? 3u : 4u) << "the beta";
    }
  }
  EXPECT_EQ(attentions, 1);
  EXPECT_EQ(ropes, 2);
  EXPECT_EQ(norms, 2);
}

TEST(DecoderBlock, TheAliasIsTheSame) {
  const Decoder a({2, 5, 7}, false, "kn", DType::kF32), b({2, 5, 7}, false, "kn", DType::kF32, "TransformerBlock");
  EXPECT_TRUE(ir::SameGraph(*Lower(a.m), *Lower(b.m)));
}

// gate_w stands before up_w here: silu goes on the former.
TEST(DecoderBlock, GateBeforeUp) {
  const Decoder d({2, 5, 7}, false, "kn", DType::kF32);
  const auto graph = Lower(d.m);
  ASSERT_TRUE(graph.ok());
  for (const ir::Node& node : graph->nodes()) {
    if (std::string_view(node.op->name) != "Silu") continue;
    const ir::Node& product = graph->node(node.inputs[0].node);
    EXPECT_EQ(graph->node(product.inputs[1].node).attributes.String("name"), "gate_w");
    return;
  }
  FAIL() << "no Silu";
}

}  // namespace
}  // namespace quern::hir
