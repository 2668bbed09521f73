// Blocks of sequences and images against plain double code: layers of Lstm and Gru, causal convolution at its edges,
// rotation by column and row, the drafting head.

#include <gmock/gmock.h>

#include <complex>

#include "hir/block.h"
#include "random_module.h"

namespace quern::hir {
namespace {

using Rows = std::vector<double>;

// Two layers, both ways, are the op applied by hand.
TEST(SequenceBlocks, LayersStack) {
  for (const bool lstm : {true, false}) {
    for (const bool carried : {false, true}) {
      const int64_t gates = lstm ? 4 : 3, hidden = 3, rows = gates * hidden;
      Module m;
      m.symbols = {{"SEQ", {1, 9}}};
      Builder b(m);
      const Value x = b.Input("x", F32({2, Extent::Symbol("SEQ"), 5})), w = b.Param("w", F32({2, rows, 5})),
                  r = b.Param("r", F32({2, 2, rows, hidden})), bias = b.Param("b", F32({2, 2, 2 * rows})),
                  ws = b.Param("ws", F32({1, 2, rows, 2 * hidden})), h = b.Input("h", F32({4, 2, hidden}));
      std::vector<Value> operands = {x, w, r, bias, ws};
      if (carried) operands.push_back(h);
      if (carried && lstm) operands.push_back(b.Input("c", F32({4, 2, hidden})));
      const std::vector<Value> made = b.Results(lstm ? "Lstm" : "Gru", operands,
                                                {{"hidden", hidden}, {"layers", int64_t{2}}, {"bidirectional", true}});
      m.outputs = made;
      ASSERT_TRUE(b.status().ok()) << b.status();
      EXPECT_EQ(m.nodes()[made[0].node].label, std::string(lstm ? "lstm" : "gru") + (carried ? "_carry" : ""));
      const std::vector<ir::RefTensor> out = ExpectPoliciesAgree(m, {{"SEQ", 4}});
      ASSERT_EQ(out.size(), lstm ? 3u : 2u);
      EXPECT_EQ(out[0].dims, (std::vector<int64_t>{2, 4, 6}));
      EXPECT_EQ(out[1].dims, (std::vector<int64_t>{4, 2, 3}));
      // The last token of the forward half, and the first of the other, are the last h of the last layer.
      for (int64_t n = 0; n < 2; ++n) {
        for (int64_t j = 0; j < hidden; ++j) {
          EXPECT_EQ(out[0].data[(n * 4 + 3) * 6 + j], out[1].data[(2 * 2 + n) * 3 + j]);
          EXPECT_EQ(out[0].data[n * 4 * 6 + 3 + j], out[1].data[(3 * 2 + n) * 3 + j]);
        }
      }
    }
  }
}

TEST(SequenceBlocks, CausalConvolutionAtItsEdges) {
  for (const int64_t taps : {1, 3}) {
    for (const bool bias : {false, true}) {
      for (const char* act : {"", "Silu"}) {
        Module m;
        Builder b(m);
        const Value x = b.Input("x", F32({2, 7, 5})), w = b.Param("w", F32({5, 1, 1, taps})),
                    left = b.Input("left", F32({2, taps - 1, 5}));
        m.outputs = b.Results("DepthwiseConv1dCausal", {x, w, left, bias ? b.Param("b", F32({5})) : Value{}},
                              {{"act", std::string(act)}});
        // The portable form: a grouped convolution of [B, C, S].
        const std::vector<int64_t> turn = {0, 2, 1};
        const Value padded = b.Mir("Transpose", {b.Mir("Concat", {left, x}, {{"axis", int64_t{1}}})}, {{"perm", turn}});
        const Value kernel = b.Mir("Reshape", {w}, {{"shape", std::vector<Extent>{5, 1, taps}}});
        const Value y = b.Mir("Conv", {padded, kernel}, {{"groups", int64_t{5}}});
        m.outputs.push_back(b.Mir("Transpose", {y}, {{"perm", turn}}));
        ASSERT_TRUE(b.status().ok()) << b.status();
        const std::vector<ir::RefTensor> out = ExpectPoliciesAgree(m);
        const ir::Feeds feeds = RandomFeeds(*Lower(m), {});
        EXPECT_EQ(out[1].dims, (std::vector<int64_t>{2, taps - 1, 5}));
        for (size_t i = 0; i < out[0].data.size(); ++i) {
          double want = out[2].data[i] + (bias ? feeds.at("b").data[i % 5] : 0);
          if (*act != 0) want /= 1 + std::exp(-want);
          EXPECT_NEAR(out[0].data[i], want, 1e-12);
        }
      }
    }
  }
}

TEST(SequenceBlocks, AxialRopeTurnsByColumnAndRow) {
  const int64_t end_x = 3, end_y = 2, head_dim = 8, heads = 2;
  for (const char* order : {"tile", "interleave"}) {
    for (const int64_t repeat : {1, 2}) {
      for (const int64_t exclude : {0, 3}) {
        Module m;
        Builder b(m);
        const int64_t turned = end_x * end_y * repeat, tokens = turned + exclude, width = heads * head_dim;
        m.outputs = {b.Block("AxialRope2d", {b.Input("x", F32({2, tokens, width}))},
                             {{"end_x", end_x},
                              {"end_y", end_y},
                              {"head_dim", head_dim},
                              {"heads", heads},
                              {"theta", 100.0},
                              {"repeat", repeat},
                              {"exclude", exclude},
                              {"order", std::string(order)}})};
        ASSERT_TRUE(b.status().ok()) << b.status();
        const ir::RefTensor out = ExpectPoliciesAgree(m)[0];
        const Rows x = RandomFeeds(*Lower(m), {}).at("x").data;
        for (int64_t row = 0; row < 2 * tokens * heads; ++row) {
          const int64_t t = row / heads % tokens;
          const int64_t at = std::string(order) == "tile" ? t % (end_x * end_y) : t / repeat;
          for (int64_t p = 0; p < head_dim / 2; ++p) {
            const double place = static_cast<double>(p < 2 ? at % end_x : at / end_x);
            const double angle = t < turned ? place * std::pow(100.0, -4.0 * static_cast<double>(p % 2) / 8) : 0;
            const std::complex<double> turn = std::polar(1.0, angle),
                                       value(x[row * head_dim + 2 * p], x[row * head_dim + 2 * p + 1]);
            EXPECT_NEAR(out.data[row * head_dim + 2 * p], (value * turn).real(), 1e-6);
            EXPECT_NEAR(out.data[row * head_dim + 2 * p + 1], (value * turn).imag(), 1e-6);
          }
        }
      }
    }
  }
}

// The steps of the head's definition, a row at a time. Weights are [K, N].
struct Head {
  const ir::Feeds& feeds;
  const Rows& operator[](const char* name) const { return feeds.at(name).data; }

  Rows Norm(Rows x, const std::string& name) const {
    double squares = 0;
    for (const double v : x) squares += v * v;
    const double r = 1 / std::sqrt(squares / static_cast<double>(x.size()) + 1e-5);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = x[i] * r * feeds.at(name + "_g").data[i] + feeds.at(name + "_b").data[i];
    return x;
  }
  Rows Times(const Rows& x, const char* weight) const {
    const Rows& w = (*this)[weight];
    Rows y(w.size() / x.size());
    for (size_t k = 0; k < x.size(); ++k) {
      for (size_t n = 0; n < y.size(); ++n) y[n] += x[k] * w[k * y.size() + n];
    }
    return y;
  }
};

TEST(SequenceBlocks, DraftingHead) {
  const int64_t batch = 3, length = 4, width = 6, heads = 4, kv = 2, size = 4, rot = 2, hidden = 5, words = 7,
                vocab = 9;
  Module m;
  m.symbols = {{"BATCH", {1, 8}}, {"SEQ", {1, 9}}};
  Builder b(m);
  const Extent B = Extent::Symbol("BATCH"), S = Extent::Symbol("SEQ");
  std::vector<Value> in = {b.Input("h", F32({B, S, width})),       b.Input("ids", {DType::kI32, {B, S}}),
                           b.Input("cos", F32({S, rot / 2})),      b.Input("sin", F32({S, rot / 2})),
                           b.Input("last", {DType::kI64, {B, 1}}), b.Param("embed", F32({words, width}))};
  const auto norm = [&](const std::string& name, int64_t n) {
    in.push_back(b.Param(name + "_g", F32({n})));
    in.push_back(b.Param(name + "_b", F32({n})));
  };
  const auto weight = [&](const char* name, int64_t k, int64_t n) { in.push_back(b.Param(name, F32({k, n}))); };
  norm("hnorm", width), norm("enorm", width), weight("eh", 2 * width, width), norm("attn", width);
  weight("qg", width, heads * 2 * size), weight("k", width, kv * size), weight("v", width, kv * size);
  norm("qn", size), norm("kn", size), weight("o", heads * size, width), norm("post", width);
  weight("gate", width, hidden), weight("up", width, hidden), weight("down", hidden, width), norm("head", width);
  weight("lm", width, vocab);
  ASSERT_EQ(in.size(), 29u);
  m.outputs = {b.Block("Qwen35MtpHead", in, {{"heads", heads}, {"kv_heads", kv}, {"head_dim", size}, {"n_rot", rot}})};
  ASSERT_TRUE(b.status().ok()) << b.status();
  const Binding binding = {{"BATCH", batch}, {"SEQ", length}};
  ExpectPoliciesAgree(m, binding);
  ir::Feeds feeds = RandomFeeds(*Lower(m), binding);
  feeds["ids"].integers = {0, 6, 3, 2, 5, 1, 4, 4, 3, 0, 2, 6};
  feeds["last"].integers = {2, 0, -1};  // rows of their own batches
  const ir::RefTensor out = RunModule(m, binding, feeds)[0];
  ASSERT_EQ(out.dims, (std::vector<int64_t>{batch, 1, vocab}));

  const Head head{feeds};
  const int64_t rows[] = {2, 0, 3};
  for (int64_t n = 0; n < batch; ++n) {
    std::vector<Rows> cur, keys, values, queries, gates;
    for (int64_t t = 0; t < length; ++t) {
      const int64_t id = feeds["ids"].integers[n * length + t];
      const auto row = [&](const char* name, int64_t r) {
        return Rows(head[name].begin() + r * width, head[name].begin() + (r + 1) * width);
      };
      Rows both = head.Norm(row("embed", id), "enorm");
      const Rows second = head.Norm(row("h", n * length + t), "hnorm");
      both.insert(both.end(), second.begin(), second.end());
      cur.push_back(head.Times(both, "eh"));
      const Rows normal = head.Norm(cur.back(), "attn"), z = head.Times(normal, "qg"), k = head.Times(normal, "k");
      // A head's norm, then the rotation of its first two elements.
      const auto turned = [&](Rows x, const char* name) {
        x = head.Norm(x, name);
        const double c = head["cos"][t], s = head["sin"][t], a = x[0];
        x[0] = a * c - x[1] * s;
        x[1] = x[1] * c + a * s;
        return x;
      };
      Rows q, g, key;
      for (int64_t i = 0; i < heads; ++i) {
        const Rows one = turned(Rows(z.begin() + i * 2 * size, z.begin() + i * 2 * size + size), "qn");
        q.insert(q.end(), one.begin(), one.end());
        g.insert(g.end(), z.begin() + i * 2 * size + size, z.begin() + (i + 1) * 2 * size);
      }
      for (int64_t i = 0; i < kv; ++i) {
        const Rows one = turned(Rows(k.begin() + i * size, k.begin() + (i + 1) * size), "kn");
        key.insert(key.end(), one.begin(), one.end());
      }
      queries.push_back(q), gates.push_back(g), keys.push_back(key), values.push_back(head.Times(normal, "v"));
    }
    const int64_t t = rows[n];
    Rows a(heads * size);
    for (int64_t i = 0; i < heads; ++i) {
      const int64_t of = i / (heads / kv) * size;
      Rows weights;
      double sum = 0;
      for (int64_t s = 0; s <= t; ++s) {
        double score = 0;
        for (int64_t e = 0; e < size; ++e) score += queries[t][i * size + e] * keys[s][of + e];
        weights.push_back(std::exp(score / 2));
        sum += weights.back();
      }
      for (int64_t e = 0; e < size; ++e) {
        for (int64_t s = 0; s <= t; ++s) a[i * size + e] += weights[s] / sum * values[s][of + e];
        a[i * size + e] /= 1 + std::exp(-gates[t][i * size + e]);
      }
    }
    Rows x = head.Times(a, "o");
    for (int64_t e = 0; e < width; ++e) x[e] += cur[t][e];
    const Rows middle = head.Norm(x, "post"), gate = head.Times(middle, "gate");
    Rows up = head.Times(middle, "up");
    for (int64_t e = 0; e < hidden; ++e) up[e] *= gate[e] / (1 + std::exp(-gate[e]));
    const Rows down = head.Times(up, "down");
    for (int64_t e = 0; e < width; ++e) x[e] += down[e];
    const Rows want = head.Times(head.Norm(x, "head"), "lm");
    for (int64_t v = 0; v < vocab; ++v) EXPECT_NEAR(out.data[n * vocab + v], want[v], 1e-9);
  }
}

}  // namespace
}  // namespace quern::hir
