// Every block lowered both ways, at shapes of distinct primes and a batch above one, against each other and against
// plain double code where the block's meaning is easy to get wrong.

#include <gmock/gmock.h>

#include "hir/block.h"
#include "random_module.h"

namespace quern::hir {
namespace {

using ::testing::ElementsAre;

TEST(Blocks, LinearWithEveryChoice) {
  for (const char* layout : {"kn", "nk"}) {
    for (const bool bias : {false, true}) {
      for (const char* act : {"", "Silu", "Gelu"}) {
        Module m;
        Builder b(m);
        const bool rows = std::string(layout) == "nk";
        const Value x = b.Input("x", F32({3, 5, 7})),
                    w = b.Param("w", F32(rows ? std::vector<Extent>{11, 7} : std::vector<Extent>{7, 11}));
        LinearOptions options{.act = act, .bias = {}, .weight_layout = layout, .label = ""};
        if (bias) options.bias = b.Param("b", F32({11}));
        m.outputs = {b.Linear(x, w, options)};
        ASSERT_TRUE(b.status().ok()) << b.status();
        ExpectPoliciesAgree(m);
        const std::vector<std::string> ops = LoweredOps(m);
        EXPECT_EQ(ops[0], bias ? "FusedMatMulBiasAct" : "MatMul");
        EXPECT_EQ(ops.size(), bias || *act == 0 ? 1u : 2u);
      }
    }
  }
}

TEST(Blocks, LinearFusedExpandsWhenFusable) {
  Module m;
  Builder b(m);
  m.outputs = {b.Block("LinearFused", {b.Input("x", F32({3, 7})), b.Param("w", F32({7, 5})), b.Param("b", F32({5}))},
                       {{"act", std::string("Tanh")}})};
  ASSERT_TRUE(b.status().ok()) << b.status();
  ExpectPoliciesAgree(m);
  EXPECT_THAT(LoweredOps(m), ElementsAre("FusedMatMulBiasAct"));
  m.policy = FusionPolicy::kFusable;
  EXPECT_THAT(LoweredOps(m), ElementsAre("MatMul", "Add", "Tanh"));
}

TEST(Blocks, SharedLinearPairMakesExactlyTwoProducts) {
  Module m;
  Builder b(m);
  const Value x = b.Input("x", F32({2, 5, 7})), w1 = b.Param("w1", F32({7, 3})), w2 = b.Param("w2", F32({7, 11}));
  const std::vector<Value> first = b.Results("SharedLinearPair", {x, w1, w2}),
                           second = b.Results("SharedLinearPair", {x, w1, w2});
  m.outputs = {first[0], first[1], second[0], second[1]};
  ASSERT_TRUE(b.status().ok()) << b.status();
  const std::vector<ir::RefTensor> out = ExpectPoliciesAgree(m);
  EXPECT_THAT(LoweredOps(m), ElementsAre("MatMul", "MatMul"));
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(out[1].data, out[3].data);
  EXPECT_EQ(out[0].dims, (std::vector<int64_t>{2, 5, 3}));
}

TEST(Blocks, SwiGluTakesUpBeforeGate) {
  Module m;
  Builder b(m);
  const Value x = b.Input("x", F32({2, 3, 5})), up = b.Param("up", F32({5, 7})), gate = b.Param("gate", F32({5, 7}));
  m.outputs = {b.SwiGLU(x, up, gate, b.Param("down", F32({7, 5})))};
  ASSERT_TRUE(b.status().ok()) << b.status();
  const ir::RefTensor got = ExpectPoliciesAgree(m)[0];
  const ir::Feeds feeds = RandomFeeds(*Lower(m), {});
  auto at = [&](const char* name, int64_t row, int64_t column) {
    const ir::RefTensor& t = feeds.find(name)->second;
    return t.data[row * t.dims.back() + column];
  };
  for (int64_t row = 0; row < 6; ++row) {
    for (int64_t n = 0; n < 5; ++n) {
      double want = 0;
      for (int64_t f = 0; f < 7; ++f) {
        double u = 0, g = 0;
        for (int64_t k = 0; k < 5; ++k) {
          u += at("x", row, k) * at("up", k, f);
          g += at("x", row, k) * at("gate", k, f);
        }
        want += u * g / (1 + std::exp(-g)) * at("down", f, n);
      }
      EXPECT_NEAR(got.data[row * 5 + n], want, 1e-12);
    }
  }
  m.policy = FusionPolicy::kFusable;
  EXPECT_THAT(LoweredOps(m), ElementsAre("MatMul", "MatMul", "Silu", "Mul", "MatMul"));
}

TEST(Blocks, NormsWithAndWithoutBeta) {
  for (const bool beta : {false, true}) {
    Module m;
    Builder b(m);
    const Value x = b.Input("x", F32({2, 3, 13})), r = b.Input("r", F32({2, 3, 13})),
                gamma = b.Param("gamma", F32({13}));
    const Value shift = beta ? b.Param("beta", F32({13})) : Value{};
    const std::vector<Value> both = b.Results("ResidualRmsNorm", {x, r, gamma, shift}, {{"eps", 1e-3}});
    m.outputs = {b.RmsNorm(x, gamma, 1e-3, shift), both[0], both[1]};
    ASSERT_TRUE(b.status().ok()) << b.status();
    const std::vector<ir::RefTensor> out = ExpectPoliciesAgree(m);
    const ir::Feeds feeds = RandomFeeds(*Lower(m), {});
    double squares = 0;
    for (int i = 0; i < 13; ++i) squares += feeds.at("x").data[i] * feeds.at("x").data[i];
    const double want = feeds.at("x").data[4] / std::sqrt(squares / 13 + 1e-3) * feeds.at("gamma").data[4] +
                        (beta ? feeds.at("beta").data[4] : 0);
    EXPECT_NEAR(out[0].data[4], want, 1e-12);
    EXPECT_NEAR(out[2].data[17], feeds.at("x").data[17] + feeds.at("r").data[17], 1e-12);
  }
}

TEST(Blocks, AZeroBetaCostsNothing) {
  Module m;
  Builder b(m);
  const Value x = b.Input("x", F32({3, 5})), gamma = b.Param("gamma", F32({5}));
  const auto zeros = m.AddConstant(F32({5}), std::vector<uint8_t>(20, 0));
  ASSERT_TRUE(zeros.ok());
  m.outputs = {b.RmsNorm(x, gamma, 1e-5, *zeros)};
  const auto graph = Lower(m);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->node(graph->outputs[0].node).inputs.size(), 2u);
}

// A constant of which some bytes are 0 is something.
TEST(Blocks, AConstantBetaIsAdded) {
  Module m;
  Builder b(m);
  const Value x = b.Input("x", F32({3, 5})), gamma = b.Param("gamma", F32({5}));
  std::vector<uint8_t> ones;
  for (int i = 0; i < 5; ++i) ones.insert(ones.end(), {0x00, 0x00, 0x80, 0x3f});
  const auto beta = m.AddConstant(F32({5}), ones);
  ASSERT_TRUE(beta.ok());
  m.outputs = {b.RmsNorm(x, gamma, 1e-5, *beta)};
  const auto graph = Lower(m);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto users = graph->Users();
  for (size_t n = 0; n < graph->nodes().size(); ++n) {
    if (graph->nodes()[n].data != nullptr) EXPECT_FALSE(users[n].empty()) << ir::Print(*graph);
  }
}

TEST(Blocks, RopeStylesAndPartialRotation) {
  for (const char* style : {"gptj", "neox"}) {
    for (const int64_t n_rot : {0, 4}) {
      Module m;
      Builder b(m);
      const int64_t width = n_rot == 0 ? 3 : 2;
      const Value x = b.Input("x", F32({2, 5, 7 * 6})), cos = b.Param("cos", F32({5, width})),
                  sin = b.Param("sin", F32({5, width}));
      m.outputs = {
          b.Block("RoPE", {x, cos, sin}, {{"head_dim", int64_t{6}}, {"n_rot", n_rot}, {"style", std::string(style)}})};
      ASSERT_TRUE(b.status().ok()) << b.status();
      const ir::RefTensor got = ExpectPoliciesAgree(m)[0];
      const ir::Feeds feeds = RandomFeeds(*Lower(m), {});
      const auto &in = feeds.at("x").data, &c = feeds.at("cos").data, &s = feeds.at("sin").data;
      // Head 4 at position 3 of batch 1, pair 1.
      const int64_t base = ((1 * 5 + 3) * 7 + 4) * 6, half = width;
      const int64_t first = std::string(style) == "gptj" ? 2 : 1, second = std::string(style) == "gptj" ? 3 : 1 + half;
      const int64_t t = 3 * width + 1;
      EXPECT_NEAR(got.data[base + first], in[base + first] * c[t] - in[base + second] * s[t], 1e-12);
      EXPECT_NEAR(got.data[base + second], in[base + second] * c[t] + in[base + first] * s[t], 1e-12);
      if (n_rot == 4) EXPECT_EQ(got.data[base + 5], in[base + 5]) << "the tail is copied";
    }
  }
}

TEST(Blocks, DepthwiseConvSeesTheCurrentTokenLast) {
  Module m;
  m.symbols = {{"SEQ", {1, 64}}};
  Builder b(m);
  const Value x = b.Input("x", F32({2, Extent::Symbol("SEQ"), 5})), w = b.Param("w", F32({5, 1, 1, 4}));
  m.outputs = b.Results("DepthwiseConv1dCausal", {x, w, b.Input("left_pad", F32({2, 3, 5}))});
  ASSERT_TRUE(b.status().ok()) << b.status();
  for (const int64_t length : {1, 7}) {
    const std::vector<ir::RefTensor> out = ExpectPoliciesAgree(m, {{"SEQ", length}});
    ASSERT_EQ(out.size(), 2u);
    const ir::Feeds feeds = RandomFeeds(*Lower(m), {{"SEQ", length}});
    auto padded = [&](int64_t batch, int64_t s, int64_t c) {
      return s < 3 ? feeds.at("left_pad").data[(batch * 3 + s) * 5 + c]
                   : feeds.at("x").data[(batch * length + s - 3) * 5 + c];
    };
    for (int64_t batch = 0; batch < 2; ++batch) {
      for (int64_t c = 0; c < 5; ++c) {
        for (int64_t s = 0; s < length; ++s) {
          double want = 0;
          for (int64_t k = 0; k < 4; ++k) want += feeds.at("w").data[c * 4 + k] * padded(batch, s + k, c);
          EXPECT_NEAR(out[0].data[(batch * length + s) * 5 + c], want, 1e-12);
        }
        for (int64_t s = 0; s < 3; ++s) EXPECT_EQ(out[1].data[(batch * 3 + s) * 5 + c], padded(batch, length + s, c));
      }
    }
  }
}

TEST(Blocks, DequantMatMulAndMir) {
  Module m;
  Builder b(m);
  const Value x = b.Input("x", F32({3, 64})), packed = b.Param("packed", {DType::kQ4_0, {7, 64}});
  const Value y = b.Block("DequantMatMul", {x, packed});
  m.outputs = {
      b.Mir("Reduce", {y}, {{"op", std::string("max")}, {"axes", std::vector<int64_t>{1}}, {"keep_dim", false}}), y};
  ASSERT_TRUE(b.status().ok()) << b.status();
  const std::vector<ir::RefTensor> out = ExpectPoliciesAgree(m);
  EXPECT_EQ(out[1].dims, (std::vector<int64_t>{3, 7}));
  EXPECT_THAT(LoweredOps(m), ElementsAre("MatMul", "Reduce"));
}

TEST(Blocks, DequantMatMulOfTheOtherSchemes) {
  Module m;
  Builder b(m);
  const Value x = b.Input("x", F32({3, 37})), w = b.Param("w", {DType::kI8, {37, 5}}), s = b.Param("s", F32({2, 5}));
  m.outputs = {b.Block("DequantMatMul", {x, w, s}, {{"scheme", std::string("int8")}})};
  ASSERT_TRUE(b.status().ok()) << b.status();
  EXPECT_EQ(m.nodes()[m.outputs[0].node].label, "dequant_matmul(int8)");
  EXPECT_EQ(ExpectPoliciesAgree(m)[0].dims, (std::vector<int64_t>{3, 5}));
}

TEST(Blocks, TheTableIsWhole) {
  std::vector<std::string> names;
  for (const BlockDef* block : Blocks()) {
    names.push_back(block->name);
    EXPECT_NE(block->infer, nullptr) << block->name;
    EXPECT_NE(block->lower, nullptr) << block->name;
    EXPECT_EQ(FindBlock(block->name), block);
  }
  EXPECT_THAT(names, ElementsAre("Attention", "AxialRope2d", "Constant", "DepthwiseConv1dCausal", "DequantMatMul",
                                 "GatedDeltaNet", "Gru", "Input", "Linear", "LinearFused", "LlamaDecoderBlock", "Lstm",
                                 "Mir", "Param", "Qwen35MtpHead", "ResidualRmsNorm", "RmsNorm", "RoPE", "SelectiveScan",
                                 "SharedLinearPair", "SwiGLU", "TransformerBlock"));
}

TEST(Blocks, AStateMakesTheCarryForm) {
  for (const bool carried : {false, true}) {
    Module m;
    Builder b(m);
    const Value q = b.Input("q", F32({2, 3, 1, 5})), k = b.Input("k", F32({2, 3, 1, 5})),
                v = b.Input("v", F32({2, 3, 2, 7})), g = b.Input("g", F32({2, 3, 2})),
                beta = b.Input("beta", F32({2, 3, 2})), state = b.Input("s", F32({2, 2, 5, 7}));
    const std::vector<Value> delta = b.Results("GatedDeltaNet", {q, k, v, g, beta, carried ? state : Value{}});
    const Value x = b.Input("x", F32({2, 3, 5})), a = b.Input("a", F32({5, 7})), c = b.Input("c", F32({2, 3, 7})),
                h = b.Input("h", F32({2, 5, 7}));
    // A state beside no d.
    const std::vector<Value> scan = b.Results("SelectiveScan", {x, x, a, c, c, Value{}, carried ? h : Value{}});
    m.outputs = {delta[0], delta[1], scan[0], scan[1]};
    ASSERT_TRUE(b.status().ok()) << b.status();
    EXPECT_EQ(m.nodes()[delta[0].node].label, carried ? "gated_delta_net_carry" : "gated_delta_net");
    EXPECT_EQ(m.nodes()[scan[0].node].label, carried ? "selective_scan_carry" : "selective_scan");
    ExpectPoliciesAgree(m);
  }
}

TEST(Blocks, BroadcastOfAColumnIsNotModulo) {
  Module m;
  Builder b(m);
  m.outputs = {b.Add(b.Input("a", F32({4, 1})), b.Input("b", F32({4, 4})))};
  ASSERT_TRUE(b.status().ok()) << b.status();
  const ir::RefTensor got = ExpectPoliciesAgree(m)[0];
  const ir::Feeds feeds = RandomFeeds(*Lower(m), {});
  EXPECT_EQ(got.data[2 * 4 + 1], feeds.at("a").data[2] + feeds.at("b").data[2 * 4 + 1]);
}

TEST(Blocks, BuilderPromotes) {
  Module m;
  Builder b(m);
  const Value sum = b.Add(b.Input("a", {DType::kF16, {3}}), b.Input("b", {DType::kBF16, {3}}));
  ASSERT_TRUE(b.status().ok()) << b.status();
  EXPECT_EQ(b.type(sum), F32({3}));
  EXPECT_EQ(b.type(b.Mul(b.Input("c", {DType::kI64, {3}}), b.Input("d", F32({3})))).dtype, DType::kF64);
}

}  // namespace
}  // namespace quern::hir
