// Graphs through the public interface alone: what runs, what is refused and how, state, text, and memory given back.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "quern/graph.h"

namespace quern {
namespace {

std::vector<float> Ramp(size_t count, float step = 0.7f) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<float>(i) * step);
  return values;
}

// y = x W + b with W [37, 13]; the product alone is z.
struct Affine {
  std::vector<float> w = Ramp(37 * 13), b = Ramp(13, 0.3f);
  Graph graph{"affine"};
  Affine() {
    graph.Symbol("N", 1, 100);
    const Value x = graph.Input("x", "f32[N, 37]");
    const Value z = graph.Op("MatMul", {x, graph.Param("w", "f32[37, 13]", w)});
    graph.Output("y", graph.Op("Add", {z, graph.Param("b", "f32[13]", b)}));
    graph.Output("z", z);
  }
  void Check(Program& program, int64_t n) {
    const std::vector<float> x = Ramp(n * 37, 0.9f);
    std::vector<float> y(n * 13, -7), z(n * 13, -7);
    const Result<void> ran = program.Run({In("x", x, {n, 37})}, {Out("z", z, {n, 13}), Out("y", y, {n, 13})});
    ASSERT_TRUE(ran.ok()) << ran.error();
    for (int64_t i = 0; i < n * 13; ++i) {
      double want = 0;
      for (int64_t k = 0; k < 37; ++k) want += static_cast<double>(x[i / 13 * 37 + k]) * w[k * 13 + i % 13];
      EXPECT_NEAR(z[i], want, 1e-5) << "element " << i << " of " << n << " rows";
      EXPECT_NEAR(y[i], want + b[i % 13], 1e-5) << "element " << i << " of " << n << " rows";
    }
  }
};

// Parameters are read where they lie from any element on: rows of a product, what is added, a table, wide floats.
TEST(GraphApi, ParametersAtAnyElement) {
  for (const int64_t at : {0, 1, 3, 5}) {
    SCOPED_TRACE(at);
    std::vector<float> w = Ramp(29 * 37 + at), b = Ramp(29 + at, 0.3f);
    std::vector<double> d(29 + at, 0.25);
    std::vector<int8_t> i(29 + at, 3);
    Graph g("apart");
    g.Symbol("N", 1, 100);
    const Value x = g.Input("x", "f32[N, 37]");
    const auto tail = [&](const auto& values) { return std::span(values).subspan(at); };
    const Value z = g.Op("MatMul", {x, g.Param("w", "f32[29, 37]", tail(w))}, {{"transpose_b", true}});
    Value y = g.Op("Add", {z, g.Param("b", "f32[29]", tail(b))});
    y = g.Op("Add", {y, g.Op("Cast", {g.Param("d", "f64[29]", tail(d))}, {{"to", "f32"}})});
    g.Output("y", g.Op("Add", {y, g.Op("Cast", {g.Param("i", "i8[29]", tail(i))}, {{"to", "f32"}})}));
    Result<Program> program = g.Compile({.threads = 1});
    ASSERT_TRUE(program.ok()) << program.error();
    // That they are not copied shows where what is kept for the next binding is not what they held.
    for (const bool changed : {false, true}) {
      if (changed) w[at] += 1, b[at] += 2;
      for (const int64_t n : {1, 5, 33}) {
        const std::vector<float> rows = Ramp(n * 37, 0.9f);
        std::vector<float> out(n * 29);
        const Result<void> ran = program->Run({In("x", rows, {n, 37})}, {Out("y", out, {n, 29})});
        ASSERT_TRUE(ran.ok()) << ran.error();
        for (int64_t e = 0; e < n * 29; ++e) {
          double want = 3.25 + b[at + e % 29];
          for (int64_t k = 0; k < 37; ++k) want += static_cast<double>(rows[e / 29 * 37 + k]) * w[at + e % 29 * 37 + k];
          ASSERT_NEAR(out[e], want, 1e-5) << "element " << e << " of " << n << " rows";
        }
      }
    }
  }
}

TEST(GraphApi, AnySizeAndTwoOutputs) {
  Affine affine;
  EXPECT_EQ(affine.graph.TypeOf({}), "");
  std::vector<std::string> lines;
  Result<Program> program = affine.graph.Compile(
      {.threads = 2, .cache = "off", .log = [&](std::string_view line) { lines.emplace_back(line); }});
  ASSERT_TRUE(program.ok()) << program.error();
  EXPECT_EQ(lines.size(), 1u);  // N == 1 is ready
  for (const int64_t n : {1, 2, 8, 9, 64, 3, 100, 1}) affine.Check(*program, n);
  EXPECT_EQ(lines.size(), 3u);  // 2..8 and the rest, once each
  ASSERT_EQ(program->inputs().size(), 1u);
  EXPECT_EQ(program->inputs()[0].type, "f32[N, 37]");
  ASSERT_EQ(program->outputs().size(), 2u);
  EXPECT_EQ(program->outputs()[1].name, "z");
  EXPECT_EQ(program->params().size(), 2u);
  EXPECT_TRUE(program->states().empty());
  const Program::Counters counters = program->counters();
  EXPECT_EQ(counters.variants, 3);
  EXPECT_GT(counters.kernels, 0);
  EXPECT_GT(counters.launches, 0);
  EXPECT_GT(counters.code_bytes, 0);
  EXPECT_GT(counters.compile, 0);
  EXPECT_GT(counters.run, 0);
}

TEST(GraphApi, OneAndTwoThreadsGiveTheSameBits) {
  Affine affine;
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2}) {
    Result<Program> program = affine.graph.Compile({.threads = threads});
    ASSERT_TRUE(program.ok()) << program.error();
    const std::vector<float> x = Ramp(100 * 37, 0.9f);
    std::vector<float> y(100 * 13), z(100 * 13);
    ASSERT_TRUE(program->Run({In("x", x, {100, 37})}, {Out("y", y, {100, 13}), Out("z", z, {100, 13})}).ok());
    y.insert(y.end(), z.begin(), z.end());
    results.push_back(std::move(y));
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(GraphApi, RunsAreChecked) {
  Affine affine;
  Result<Program> program = affine.graph.Compile({.threads = 1});
  ASSERT_TRUE(program.ok()) << program.error();
  const std::vector<float> x = Ramp(3 * 37);
  const std::vector<double> doubles(3 * 37);
  std::vector<float> y(3 * 13 + 1, -7), z(3 * 13, -7);
  const std::vector<float> y_before = y;
  const MutableTensor out_y = Out("y", std::span(y).first(39), {3, 13}), out_z = Out("z", z, {3, 13});
  const auto expect = [&](const std::vector<ConstTensor>& inputs, const std::vector<MutableTensor>& outputs,
                          const std::map<std::string, int64_t>& symbols, ErrorCode code, std::string_view sentence) {
    const Result<void> result = program->Run(inputs, outputs, symbols);
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(static_cast<int>(result.code()), static_cast<int>(code)) << result.error();
    EXPECT_EQ(result.error(), sentence);
    EXPECT_EQ(result.details().where, "affine");
  };
  expect({}, {out_y, out_z}, {}, ErrorCode::kMissing, "input x was not given (in affine)");
  expect({In("x", x, {3, 37})}, {out_y}, {}, ErrorCode::kMissing, "output z was not given (in affine)");
  expect({In("x", x, {3, 37}), In("q", x, {3, 37})}, {out_y, out_z}, {}, ErrorCode::kUnknownName,
         "there is no input q; there is: x (in affine)");
  expect({In("x", x, {3, 37}), In("x", x, {3, 37})}, {out_y, out_z}, {}, ErrorCode::kDuplicateName,
         "Run: the name input x is taken (in affine)");
  expect({In("x", x, {3, 37})}, {out_y, out_z, Out("w", z, {3, 13})}, {}, ErrorCode::kUnknownName,
         "there is no output w; there is: y, z (in affine)");
  expect({In("x", doubles, {3, 37})}, {out_y, out_z}, {}, ErrorCode::kDTypeMismatch,
         "input x is f64, f32 expected (in affine)");
  expect({In("x", x, {3 * 37})}, {out_y, out_z}, {}, ErrorCode::kShapeMismatch,
         "input x is f32[111], f32[N, 37] expected (in affine)");
  expect({In("x", x, {37, 3})}, {out_y, out_z}, {}, ErrorCode::kShapeMismatch,
         "input x is f32[37, 3], f32[N, 37] with N = 37 expected (in affine)");
  expect({In("x", x, {2, 37})}, {out_y, out_z}, {}, ErrorCode::kShapeMismatch,
         "input x is 444 bytes, 296 bytes of f32[2, 37] expected (in affine)");
  expect({In("x", x, {3, 37})}, {Out("y", std::span(y).first(26), {2, 13}), out_z}, {}, ErrorCode::kShapeMismatch,
         "output y is f32[2, 13], f32[N, 13] with N = 3 expected (in affine)");
  expect({In("x", x, {3, 37})}, {out_y, out_z}, {{"N", 4}}, ErrorCode::kShapeMismatch,
         "input x is f32[3, 37], f32[N, 37] with N = 4 expected (in affine)");
  expect({In("x", x, {3, 37})}, {out_y, out_z}, {{"M", 4}}, ErrorCode::kUnknownName,
         "there is no symbol M; there is: N (in affine)");
  expect({In("x", std::span<const float>(), {0, 37})}, {out_y, out_z}, {}, ErrorCode::kOutOfRange,
         "symbol N is 0, outside 1..100 (in affine)");
  expect({{"x", x.data(), x.size() * 4, nullptr, {INT64_MAX, 37}}}, {out_y, out_z}, {}, ErrorCode::kOutOfRange,
         "symbol N is 9223372036854775807, outside 1..100 (in affine)");
  expect({{"x", nullptr, 444, nullptr, {3, 37}}}, {out_y, out_z}, {}, ErrorCode::kMissing,
         "memory of input x was not given (in affine)");
  expect({{"x", reinterpret_cast<const char*>(y.data()) + 1, 444, nullptr, {3, 37}}}, {out_y, out_z}, {},
         ErrorCode::kInvalid, "input x is not aligned to 4 bytes (in affine)");
  expect({In("x", x, {3, 37})}, {out_y, Out("z", std::span(y).subspan(1), {3, 13})}, {}, ErrorCode::kInvalid,
         "output z overlaps output y in memory (in affine)");
  std::vector<float> both = Ramp(3 * 37);
  expect({In("x", both, {3, 37})}, {out_y, Out("z", std::span(both).subspan(70, 39), {3, 13})}, {}, ErrorCode::kInvalid,
         "output z overlaps input x in memory (in affine)");
  EXPECT_EQ(y, y_before);
  EXPECT_EQ(z, std::vector<float>(39, -7));
  affine.Check(*program, 3);
}

TEST(GraphApi, ParametersAreBoundLater) {
  Graph graph("late");
  graph.Output("y", graph.Op("Mul", {graph.Input("x", "f32[5]"), graph.Param("w", "f32[5]")}));
  Result<Program> program = graph.Compile({.threads = 1});
  ASSERT_TRUE(program.ok()) << program.error();
  const std::vector<float> x = {1, 2, 3, 4, 5}, two(5, 2), three(5, 3);
  std::vector<float> y(5);
  const auto run = [&] { return program->Run({In("x", x, {5})}, {Out("y", y, {5})}); };
  EXPECT_EQ(run().error(), "parameter w was not given (in late)");
  EXPECT_EQ(run().code(), ErrorCode::kMissing);
  EXPECT_EQ(program->Bind("v", two).code(), ErrorCode::kUnknownName);
  EXPECT_EQ(program->Bind("w", std::span(two).first(4)).error(),
            "parameter w is 16 bytes, 20 bytes of f32[5] expected (in late)");
  for (const std::vector<float>& w : {two, three}) {
    ASSERT_TRUE(program->Bind("w", w).ok());
    ASSERT_TRUE(run().ok()) << run().error();
    for (int i = 0; i < 5; ++i) EXPECT_EQ(y[i], x[i] * w[0]);
  }
  // Memory that is not there, and a result that would be written over what it is made of.
  const Result<void> nowhere = program->Bind("w", std::span<const float>(static_cast<const float*>(nullptr), 5));
  EXPECT_EQ(nowhere.code(), ErrorCode::kMissing);
  EXPECT_EQ(nowhere.error(), "memory of parameter w was not given (in late)");
  alignas(64) float bound[8] = {1, 1, 1, 1, 1};
  ASSERT_TRUE(program->Bind("w", std::span<const float>(bound, 5)).ok());
  const Result<void> over = program->Run({In("x", x, {5})}, {Out("y", std::span<float>(bound + 3, 5), {5})});
  EXPECT_EQ(over.code(), ErrorCode::kInvalid);
  EXPECT_EQ(over.error(), "output y overlaps parameter w in memory (in late)");
  ASSERT_TRUE(run().ok()) << run().error();
}

TEST(GraphApi, TheFirstErrorSticks) {
  const auto error = [](auto build) {
    Graph graph("g");
    graph.Symbol("N", 1, 9);
    build(graph);
    Result<Program> program = graph.Compile({.threads = 1});
    EXPECT_FALSE(program.ok());
    EXPECT_EQ(graph.status().error(), program.error());
    return program.details();
  };
  const std::vector<float> some(12);
  Error e = error([&](Graph& g) {
    g.Output("y", g.Block("SwiGLU",
                          {g.Input("x", "f32[N, 5]"), g.Param("up", "f32[5, 7]"), g.Param("gate", "f32[7, 5]"),
                           g.Param("down", "f32[7, 5]")},
                          {}, "ffn"));
    g.Op("NoSuchOp", {});
  });
  EXPECT_EQ(e.code, ErrorCode::kShapeMismatch);
  EXPECT_EQ(e.op, "SwiGLU");
  EXPECT_EQ(e.operand, "gate");
  EXPECT_EQ(e.where, "ffn");
  e = error([](Graph& g) { g.Block("Swiglu", {g.Input("x", "f32[5]")}); });
  EXPECT_EQ(e.code, ErrorCode::kUnknownOp);
  EXPECT_EQ(e.message, "there is no block or op Swiglu; did you mean SwiGLU? (in %1)");
  EXPECT_EQ(error([](Graph& g) { g.Op("NoSuchOp", {g.Input("x", "f32[5]")}); }).code, ErrorCode::kUnknownOp);
  EXPECT_EQ(error([](Graph& g) { g.Block("Linear", {g.Input("x", "f32[5]")}); }).code, ErrorCode::kInputCount);
  EXPECT_EQ(error([](Graph& g) { g.Block("Linear", {{3, 0}, {4, 0}}); }).code, ErrorCode::kUnknownOperand);
  EXPECT_EQ(error([](Graph& g) { g.Output("y", {3, 0}); }).code, ErrorCode::kUnknownOperand);
  EXPECT_EQ(error([](Graph& g) { g.Output("y", {}); }).code, ErrorCode::kUnknownOperand);
  EXPECT_EQ(error([](Graph& g) { g.Input("x", "f32[SEQ]"); }).code, ErrorCode::kUnboundSymbol);
  EXPECT_EQ(error([](Graph& g) { g.Input("x", "f32[5]"), g.Input("x", "f32[5]"); }).code, ErrorCode::kDuplicateName);
  EXPECT_EQ(error([](Graph& g) { g.Symbol("N"); }).code, ErrorCode::kDuplicateName);
  EXPECT_EQ(error([](Graph& g) { g.Symbol("M", 3, 2); }).code, ErrorCode::kOutOfRange);
  EXPECT_EQ(error([](Graph& g) { g.Symbol("M", -1, 2); }).code, ErrorCode::kOutOfRange);
  EXPECT_EQ(error([](Graph& g) { g.Symbol("2*N"); }).code, ErrorCode::kInvalid);
  EXPECT_EQ(error([](Graph& g) { g.Specialise("M", 1, 1); }).code, ErrorCode::kUnboundSymbol);
  EXPECT_EQ(error([](Graph& g) { g.Specialise("N", 5, 10); }).code, ErrorCode::kOutOfRange);
  e = error([](Graph& g) { g.Input("x", "float[5]"); });
  EXPECT_EQ(e.code, ErrorCode::kInvalid);
  EXPECT_EQ(e.message, "x: unknown dtype in tensor type \"float[5]\"");
  EXPECT_EQ(e.where, "x");
  for (const char* type : {"", "f32", "f32[", "f32[]]", "f32[N", "f32[5 - N]", "f32[-1]", "f32[5,]", "f32[,5]",
                           "q4_K[3, 100]", "f32[99999999999999999999]"}) {
    EXPECT_FALSE(error([&](Graph& g) { g.Output("y", g.Op("Neg", {g.Input("x", type)})); }).message.empty()) << type;
  }
  EXPECT_EQ(error([&](Graph& g) { g.Param("w", "f32[N]", some); }).code, ErrorCode::kInvalid);
  EXPECT_EQ(error([&](Graph& g) { g.Param("w", "i32[12]", some); }).code, ErrorCode::kDTypeMismatch);
  e = error([&](Graph& g) { g.Param("w", "f32[3, 5]", some); });
  EXPECT_EQ(e.code, ErrorCode::kShapeMismatch);
  EXPECT_EQ(e.message, "parameter w is 48 bytes, 60 bytes of f32[3, 5] expected");
  e = error([](Graph& g) { g.Op("Softmax", {g.Input("x", "f32[5]")}, {{"axis", "last"}}, "attention"); });
  EXPECT_EQ(e.where, "attention");
  e = error([](Graph& g) {
    g.Block("RmsNorm", {g.Input("x", "f32[N, 5]"), g.Param("gamma", "f32[5]")}, {{"eps", "small"}}, "norm");
  });
  EXPECT_EQ(e.code, ErrorCode::kBadAttribute);
  EXPECT_EQ(e.operand, "eps");
  EXPECT_EQ(e.where, "norm");
  EXPECT_EQ(error([](Graph& g) {
              g.Block("RmsNorm", {g.Input("x", "f32[N, 5]"), g.Param("gamma", "f32[5]")}, {{"epsilon", 1e-5}});
            }).code,
            ErrorCode::kBadAttribute);
  e = error([](Graph& g) {
    const Value x = g.Input("x", "f32[5]");
    g.Output("y", x);
    g.Output("y", x);
  });
  EXPECT_EQ(e.code, ErrorCode::kDuplicateName);
}

TEST(GraphApi, OptionsAreChecked) {
  Affine affine;
  EXPECT_EQ(affine.graph.Compile({.cpu = "pentium"}).code(), ErrorCode::kInvalid);
  EXPECT_EQ(affine.graph.Compile({.threads = -1}).code(), ErrorCode::kInvalid);
  EXPECT_EQ(affine.graph.Compile({.threads = 100000}).error(), "100000 threads were asked for, 0 to 256 can be had");
  EXPECT_EQ(affine.graph.Compile({.compile_threads = 100000}).code(), ErrorCode::kInvalid);
}

TEST(GraphApi, AttributesOfEveryKind) {
  Graph graph("kinds");
  graph.Symbol("N", 2, 9);
  const Value x = graph.Input("x", "f32[N, 6]");
  const Value n = graph.Op("Narrow", {x}, {{"axis", 0}, {"start", "N - 2"}, {"length", 2}});
  const Value r = graph.Op("Reshape", {n}, {{"shape", std::vector<std::string>{"3", "4"}}});
  const Value t = graph.Op("Transpose", {r}, {{"perm", std::vector<int64_t>{1, 0}}});
  const Value c = graph.Op("Cast", {t}, {{"to", "f64"}});
  const Value s = graph.Op("Reduce", {c}, {{"op", "sum"}, {"axes", std::vector<int64_t>{0}}, {"keep_dim", false}});
  graph.Output("y", s);
  EXPECT_EQ(graph.TypeOf(c), "f64[4, 3]");
  EXPECT_NE(graph.Text().find("Mir.Narrow"), std::string::npos);
  Result<Program> program = graph.Compile({.threads = 1});
  ASSERT_TRUE(program.ok()) << program.error();
  std::vector<float> values(5 * 6);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  std::vector<double> y(3);
  const Result<void> ran = program->Run({In("x", values, {5, 6})}, {Out("y", y, {3})});
  ASSERT_TRUE(ran.ok()) << ran.error();
  EXPECT_EQ(y, (std::vector<double>{18 + 19 + 20 + 21, 22 + 23 + 24 + 25, 26 + 27 + 28 + 29}));
}

TEST(GraphApi, IntegersAndBools) {
  Graph graph;
  const std::vector<float> table = Ramp(4 * 3);
  const Value i = graph.Input("i", "i32[7]"), m = graph.Input("mask", "bool[7, 1]");
  const Value rows = graph.Op("Gather", {graph.Param("t", "f32[4, 3]", table), i}, {{"axis", 0}});
  graph.Output("chosen", graph.Op("Where", {m, rows, graph.Op("Neg", {rows})}));
  graph.Output("large", graph.Op("Gt", {i, graph.Input("j", "i32[7]")}));
  Result<Program> program = graph.Compile({.threads = 1});
  ASSERT_TRUE(program.ok()) << program.error();
  const std::vector<int32_t> ids = {3, 0, 1, 2, 3, 3, 0}, limits(7, 1);
  const std::vector<uint8_t> mask = {1, 0, 1, 0, 0, 1, 1};
  std::vector<float> chosen(21);
  std::vector<uint8_t> large(7, 9);
  const Result<void> ran = program->Run({In("i", ids, {7}), In("j", limits, {7}), In("mask", mask, {7, 1})},
                                        {Out("chosen", chosen, {7, 3}), Out("large", large, {7})});
  ASSERT_TRUE(ran.ok()) << ran.error();
  for (int n = 0; n < 21; ++n) EXPECT_EQ(chosen[n], (mask[n / 3] ? 1 : -1) * table[ids[n / 3] * 3 + n % 3]) << n;
  for (int n = 0; n < 7; ++n) EXPECT_EQ(large[n], ids[n] > 1) << n;
}

// One tap sees no other token: the state has no rows.
TEST(GraphApi, ConvolutionOfOneTap) {
  Graph graph;
  graph.Symbol("S", 1, 8);
  const std::vector<float> w = {1, 2, 3, 4, 5};
  const std::vector<Value> made = graph.Blocks(
      "DepthwiseConv1dCausal",
      {graph.Input("x", "f32[2, S, 5]"), graph.Param("w", "f32[5, 1, 1, 1]", w), graph.Input("past", "f32[2, 0, 5]")});
  graph.Output("y", made[0]);
  EXPECT_EQ(graph.TypeOf(made[1]), "f32[2, 0, 5]");
  Result<Program> program = graph.Compile({.threads = 1});
  ASSERT_TRUE(program.ok()) << program.error();
  const std::vector<float> x = Ramp(2 * 3 * 5), none;
  std::vector<float> y(x.size());
  const Result<void> ran = program->Run({In("x", x, {2, 3, 5}), In("past", none, {2, 0, 5})}, {Out("y", y, {2, 3, 5})});
  ASSERT_TRUE(ran.ok()) << ran.error();
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], x[i] * w[i % 5]) << i;
}

// The rotation of both styles, partial too, as the epilogue of a product: element indices go through select and
// remainder.
TEST(GraphApi, ProductsAreRotated) {
  constexpr int64_t kHeads = 3, kDim = 32, kIn = 29;
  for (const char* style : {"gptj", "neox"}) {
    for (const int64_t n_rot : {kDim, int64_t{20}}) {
      const int64_t half = n_rot / 2;
      const std::vector<float> w = Ramp(kIn * kHeads * kDim, 0.37f);
      Graph graph("rotated");
      graph.Symbol("N", 1, 20);
      const Value product = graph.Op("MatMul", {graph.Input("x", "f32[N, 29]"), graph.Param("w", "f32[29, 96]", w)});
      const std::string table = "f32[N, " + std::to_string(half) + "]";
      graph.Output("y", graph.Op("Rope", {product, graph.Input("cos", table), graph.Input("sin", table)},
                                 {{"head_dim", kDim}, {"n_rot", n_rot}, {"style", style}, {"packed", true}}));
      Result<Program> program = graph.Compile({.threads = 2});
      ASSERT_TRUE(program.ok()) << program.error();
      for (const int64_t n : {1, 3, 13}) {
        const std::vector<float> x = Ramp(n * kIn), c = Ramp(n * half, 0.11f), s = Ramp(n * half, 0.23f);
        std::vector<float> y(n * kHeads * kDim);
        const Result<void> ran = program->Run({In("x", x, {n, kIn}), In("cos", c, {n, half}), In("sin", s, {n, half})},
                                              {Out("y", y, {n, kHeads * kDim})});
        ASSERT_TRUE(ran.ok()) << ran.error();
        for (int64_t row = 0; row < n; ++row) {
          std::vector<double> p(kHeads * kDim);
          for (int64_t j = 0; j < kHeads * kDim; ++j) {
            for (int64_t k = 0; k < kIn; ++k) p[j] += static_cast<double>(x[row * kIn + k]) * w[k * kHeads * kDim + j];
          }
          for (int64_t j = 0; j < kHeads * kDim; ++j) {
            const int64_t e = j % kDim;
            double want = p[j];
            if (e < n_rot) {
              const bool gptj = style == std::string("gptj"), first = gptj ? e % 2 == 0 : e < half;
              const int64_t pair = gptj ? e / 2 : e % half, distance = gptj ? 1 : half;
              const double cosine = c[row * half + pair], sine = s[row * half + pair];
              want = first ? p[j] * cosine - p[j + distance] * sine : p[j] * cosine + p[j - distance] * sine;
            }
            EXPECT_NEAR(y[row * kHeads * kDim + j], want, 2e-5)
                << style << " of " << n_rot << ", element " << j << " of row " << row;
          }
        }
      }
    }
  }
}

TEST(GraphApi, StateIsCarried) {
  Graph graph("sum");
  graph.Symbol("N", 1, 50);
  const Value total = graph.Input("total", "f32[3]");
  const Value now = graph.Op("Add", {total, graph.Op("Reduce", {graph.Input("x", "f32[N, 3]")},
                                                     {{"op", "sum"}, {"axes", std::vector<int64_t>{0}}})});
  graph.Carry("total", now);
  graph.Output("mean", graph.Op("Reduce", {now}, {{"op", "mean"}, {"axes", std::vector<int64_t>{0}}}));
  Result<Program> program = graph.Compile({.threads = 2});
  ASSERT_TRUE(program.ok()) << program.error();
  ASSERT_EQ(program->states().size(), 1u);
  EXPECT_EQ(program->states()[0].name, "total");
  EXPECT_EQ(program->inputs().size(), 1u);
  std::vector<float> mean(1);
  for (const int64_t n : {1, 7, 50}) {
    const std::vector<float> ones(n * 3, 1);
    const Result<void> ran = program->Run({In("x", ones, {n, 3})}, {Out("mean", mean, {})});
    ASSERT_TRUE(ran.ok()) << ran.error();
  }
  EXPECT_EQ(mean[0], 58);
  Result<std::span<std::byte>> state = program->State("total");
  ASSERT_TRUE(state.ok());
  ASSERT_EQ(state->size(), 12u);
  float kept[3];
  std::memcpy(kept, state->data(), 12);
  EXPECT_EQ(kept[2], 58);
  EXPECT_EQ(program->State("x").code(), ErrorCode::kUnknownName);
  program->ResetState();
  const std::vector<float> twos(3, 2);
  ASSERT_TRUE(program->Run({In("x", twos, {1, 3})}, {Out("mean", mean, {})}).ok());
  EXPECT_EQ(mean[0], 2);

  Graph wrong("wrong");
  const Value s = wrong.Input("s", "f32[3]");
  wrong.Carry("s", wrong.Op("Reshape", {s}, {{"shape", std::vector<std::string>{"3", "1"}}}));
  EXPECT_FALSE(wrong.Compile().ok());
  Graph unknown("unknown");
  unknown.Carry("t", unknown.Input("s", "f32[3]"));
  EXPECT_FALSE(unknown.Compile().ok());
}

TEST(GraphApi, OutputsThatAreInputsOrTwice) {
  Graph graph;
  const std::vector<float> w = {9, 8};
  const Value x = graph.Input("x", "f32[2]"), n = graph.Op("Neg", {x});
  graph.Output("same", x);
  graph.Output("first", n);
  graph.Output("second", n);
  graph.Output("weights", graph.Param("w", "f32[2]", w));
  graph.Output("one", graph.Scalar(1));
  Result<Program> program = graph.Compile({.threads = 1});
  ASSERT_TRUE(program.ok()) << program.error();
  const std::vector<float> v = {1, 2};
  std::vector<float> same(2), first(2), second(2), weights(2), one(1);
  const Result<void> ran =
      program->Run({In("x", v, {2})}, {Out("same", same, {2}), Out("first", first, {2}), Out("second", second, {2}),
                                       Out("weights", weights, {2}), Out("one", one, {})});
  ASSERT_TRUE(ran.ok()) << ran.error();
  EXPECT_EQ(same, v);
  EXPECT_EQ(first, (std::vector<float>{-1, -2}));
  EXPECT_EQ(second, first);
  EXPECT_EQ(weights, w);
  EXPECT_EQ(one[0], 1);
}

TEST(GraphApi, TextInAndOut) {
  Result<Graph> graph = Graph::Parse(R"(graph t sym N in 1..20 {
    %0 = Input() {name = "x"} : f32[N, 4]
    %1 = Param() {name = "w"} : f32[4]
    %2 = Mul(%0, %1) : f32[N, 4]
    %3 = Exp(%2) : f32[N, 4]
    return %3
  })");
  ASSERT_TRUE(graph.ok()) << graph.error();
  Result<Program> program = graph->Compile({.threads = 1});
  ASSERT_TRUE(program.ok()) << program.error();
  const std::vector<float> w = {1, 2, 3, 4}, x(12, 0.5f);
  ASSERT_TRUE(program->Bind("w", w).ok());
  std::vector<float> y(12);
  ASSERT_TRUE(program->Run({In("x", x, {3, 4})}, {Out("0", y, {3, 4})}).ok());
  for (int i = 0; i < 12; ++i) EXPECT_NEAR(y[i], std::exp(0.5 * w[i % 4]), 1e-5);
  // What a dump prints before fusion is such text again, and a fused graph as well.
  for (const char* after : {"lower", "simplify", "fuse_regions"}) {
    Result<std::string> text = graph->Dump({.after = after, .tokens = 3});
    ASSERT_TRUE(text.ok()) << text.error();
    Result<Graph> again = Graph::Parse(*text);
    EXPECT_TRUE(again.ok()) << after << ": " << again.error();
  }
  EXPECT_EQ(Graph::Parse("graph t {\n  %0 = Nonsense() : f32[3]\n}").error(), "2:16: there is no block or op Nonsense");
  EXPECT_EQ(Graph::Parse("").code(), ErrorCode::kInvalid);
}

TEST(GraphApi, DumpsOfEveryStage) {
  Affine affine;
  for (const auto& [stage, word] : std::vector<std::pair<std::string, std::string>>{{"hir", "Mir.MatMul"},
                                                                                    {"mir", "Region"},
                                                                                    {"lir", "launch 0"},
                                                                                    {"kir", "kernel"},
                                                                                    {"llvm", "define"},
                                                                                    {"asm", "ret"}}) {
    Result<std::string> text = affine.graph.Dump({.stage = stage, .tokens = 5});
    ASSERT_TRUE(text.ok()) << text.error();
    EXPECT_NE(text->find(word), std::string::npos) << stage;
  }
  EXPECT_EQ(affine.graph.Dump({.stage = "x"}).error(),
            "there is no stage x; there are hir, mir, lir, kir, llvm and asm, and of devices ptx, metal");
  EXPECT_EQ(affine.graph.Dump({.stage = "kir", .kernel = "nowhere"}).error(),
            "no kernel has a label that contains \"nowhere\"");
  EXPECT_FALSE(affine.graph.Dump({.after = "x"}).ok());
  EXPECT_FALSE(affine.graph.Dump({.after = "cse", .skip = {"cse"}}).ok());
  // A pass that stops leaves the composite alone, one that is left out does too.
  Graph soft("soft");
  soft.Output("y", soft.Op("Softmax", {soft.Input("x", "f32[3, 5]")}));
  EXPECT_NE(soft.Dump({.stop_after = "lower"})->find("Softmax"), std::string::npos);
  EXPECT_EQ(soft.Dump({.stop_after = "expand_composites"})->find("Softmax("), std::string::npos);
  EXPECT_NE(soft.Dump({.stop_after = "fold_constants", .skip = {"expand_composites"}})->find("Softmax"),
            std::string::npos);
  EXPECT_FALSE(soft.Dump({.after = "fold_constants", .skip = {"expand_composites"}}).ok())
      << "fusion cannot take a composite";
}

// A program that runs in one thread refuses a run from another, and says so.
TEST(GraphApi, BusyIsAnError) {
  Affine affine;
  Result<Program> program = affine.graph.Compile({.threads = 1});
  ASSERT_TRUE(program.ok()) << program.error();
  const std::vector<float> x = Ramp(100 * 37);
  std::atomic<int> ran{0}, busy{0}, other{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      std::vector<float> y(100 * 13), z(100 * 13);
      for (int i = 0; i < 200; ++i) {
        const Result<void> result =
            program->Run({In("x", x, {100, 37})}, {Out("y", y, {100, 13}), Out("z", z, {100, 13})});
        (result.ok() ? ran : result.code() == ErrorCode::kBusy ? busy : other)++;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(other, 0);
  EXPECT_EQ(ran + busy, 400);
  EXPECT_GE(ran, 1);
}

}  // namespace
}  // namespace quern
