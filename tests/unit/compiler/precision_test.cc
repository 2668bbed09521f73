// Mixed precision: which operands become halves, that results are f32 of the right size, and what stays as it was.
#include "quern/precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "opt/mixed_precision.h"

namespace quern {
namespace {

int Count(const std::string& text, const std::string& of) {
  int count = 0;
  for (size_t at = text.find(of); at != std::string::npos; at = text.find(of, at + 1)) ++count;
  return count;
}

std::string After(std::string_view text, const opt::PrecisionOptions& options) {
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return "";
  const StatusOr<ir::Graph> mixed = opt::MixPrecision(*graph, options);
  EXPECT_TRUE(mixed.ok()) << mixed.status();
  if (!mixed.ok()) return "";
  const Status verified = ir::Verify(*mixed);
  EXPECT_TRUE(verified.ok()) << verified;
  return ir::Print(*mixed);
}

constexpr const char* kGraph = R"(graph g {
  %0 = Input() {name = "x"} : f32[5, 32]
  %1 = Param() {name = "w"} : f32[32, 16]
  %2 = MatMul(%0, %1) : f32[5, 16]  @"layers.0/up"
  %3 = Softmax(%2) : f32[5, 16]
  %4 = Reshape(%3) {shape = <1, 5, 16>} : f32[1, 5, 16]
  %5 = Attention(%4, %4, %4) {head_dim = 8, heads = 2, kv_heads = 2} : f32[1, 5, 16]
  %6 = Input() {name = "image"} : f32[2, 3, 9]
  %7 = Param() {name = "k"} : f32[7, 3, 2]
  %8 = Param() {name = "b"} : f32[7]
  %9 = Conv(%6, %7, %8) : f32[2, 7, 8]
  %10 = Reduce(%9) {axes = [2], op = "sum"} : f32[2, 7]
  %11 = MatMul(%10, %10) {transpose_b = true} : f32[2, 2]
  return %5, %10, %11
}
)";

TEST(MixedPrecision, ProductsAndAttentionAreOverHalves) {
  const std::string all = After(kGraph, {.dtype = DType::kF16});
  EXPECT_EQ(Count(all, "MatMul("), 2);
  EXPECT_NE(all.find(": f16[5, 16]  @\"layers.0/up\" by \"mixed_precision\""), std::string::npos) << all;
  EXPECT_EQ(Count(all, ": f16[1, 5, 16]"), 4) << all;  // q, k, v and the result
  EXPECT_NE(all.find("f16[7, 3, 2]"), std::string::npos) << all;
  EXPECT_NE(all.find("Softmax(%"), std::string::npos);
  EXPECT_EQ(Count(all, "Reduce("), 1);
  EXPECT_NE(all.find("{axes = [2], keep_dim = false, op = \"sum\"} : f32[2, 7]"), std::string::npos) << all;
  EXPECT_NE(all.find("return "), std::string::npos);
}

TEST(MixedPrecision, OfWeightsAlone) {
  const std::string weights = After(kGraph, {.weights_only = true});
  EXPECT_EQ(Count(weights, "bf16["), 1) << weights;  // w: a Conv takes no image of f32 beside halves
  EXPECT_NE(weights.find(": f32[5, 16]  @\"layers.0/up\" by \"mixed_precision\""), std::string::npos) << weights;
}

TEST(MixedPrecision, OfSomeOpsAndSomeLabels) {
  EXPECT_EQ(Count(After(kGraph, {.ops = {"Attention"}}), ": bf16["), 4);
  EXPECT_EQ(Count(After(kGraph, {.ops = {"MatMul"}, .keep = {"layers.0"}}), ": bf16["), 3);  // the last product
  EXPECT_EQ(Count(After(kGraph, {.ops = {"Softmax"}}), "bf16"), 0);
}

TEST(MixedPrecision, InBodies) {
  const std::string text = After(R"(graph g {
  %0 = Input() {name = "x"} : f32[3, 4, 4]
  %1 = Scan(%0) {carries = 0, length = <3>, xs = 1} : f32[3, 4, 4] body graph body {
    %0 = Input() {name = "row"} : f32[4, 4]
    %1 = MatMul(%0, %0) : f32[4, 4]
    return %1
  }
  return %1
}
)",
                                 {});
  EXPECT_NE(text.find(": bf16[4, 4]"), std::string::npos) << text;
}

// Of blocks, with the bytes of its parameters, compiled and run.
TEST(MixedPrecision, RunsWithinWhatHalvesHold) {
  std::vector<float> w1(24 * 40), w2(40 * 24), gamma(24, 1);
  for (size_t i = 0; i < w1.size(); ++i)
    w1[i] = std::sin(static_cast<float>(i)), w2[i] = std::cos(static_cast<float>(i));
  Graph g("ffn");
  g.Symbol("S", 1, 16);
  const Value x = g.Input("x", "f32[S, 24]");
  const Value h = g.Block("RmsNorm", {x, g.Param("gamma", "f32[24]", gamma)});
  const Value up = g.Block("Linear", {h, g.Param("w1", "f32[24, 40]", w1)}, {{"act", "Silu"}}, "up");
  g.Output("y", g.Block("Linear", {up, g.Param("w2", "f32[40, 24]", w2)}, {}, "down"));
  std::vector<float> in(5 * 24), exact(5 * 24);
  for (size_t i = 0; i < in.size(); ++i) in[i] = std::sin(0.7f * static_cast<float>(i));
  const auto run = [&](const Graph& graph, std::vector<float>& y) {
    Result<Program> program = graph.Compile({.cache = "off"});
    ASSERT_TRUE(program.ok()) << program.error();
    const Result<void> ran = program->Run({In("x", in, {5, 24})}, {Out("y", y, {5, 24})});
    ASSERT_TRUE(ran.ok()) << ran.error();
  };
  run(g, exact);
  double size = 0;
  for (const float value : exact) size = std::max(size, std::fabs(static_cast<double>(value)));
  for (const auto& [options, off] : std::vector<std::pair<PrecisionOptions, double>>{
           {{}, 2e-2}, {{.dtype = "f16"}, 3e-3}, {{.conservative = true}, 2e-2}, {{.keep = {"up", "down"}}, 0}}) {
    const Result<Graph> mixed = MixedPrecision(g, options);
    ASSERT_TRUE(mixed.ok()) << mixed.error();
    std::vector<float> y(exact.size());
    run(*mixed, y);
    double worst = 0;
    for (size_t i = 0; i < y.size(); ++i)
      worst = std::max(worst, std::fabs(static_cast<double>(y[i]) - exact[i]) / size);
    EXPECT_LE(worst, off == 0 ? 1e-6 : off);
    if (off != 0) EXPECT_GT(worst, 1e-6);
  }
}

TEST(MixedPrecision, Errors) {
  Graph g;
  g.Output("y", g.Op("Neg", {g.Input("x", "f32[3]")}));
  EXPECT_EQ(MixedPrecision(g, {.dtype = "i8"}).code(), ErrorCode::kInvalid);
  EXPECT_EQ(MixedPrecision(g, {.ops = {"Matmul"}}).code(), ErrorCode::kUnknownOp);
  Graph broken;
  broken.Input("x", "f33[3]");
  EXPECT_FALSE(MixedPrecision(broken).ok());
}

}  // namespace
}  // namespace quern
