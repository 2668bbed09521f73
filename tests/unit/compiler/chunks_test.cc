// Work for many cores: a step of one token of a model with 1.1 billion parameters (32 heads of 64, 4 of them with keys)
// has 64 chunks in every kernel that reads weights, and in attention from 2048 keys on.
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/pipeline.h"
#include "hir/builder.h"

namespace quern {
namespace {

constexpr int64_t kThreads = 64, kKeys = 2048;

// A layer as a model has it, in the middle: its norms and products, its caches.
hir::Module Layer(DType weights) {
  hir::Module m;
  m.symbols = {{"SEQ", {1, 256}}, {"PAST_SEQ", {0, 4095}}};
  hir::Builder b(m);
  const Extent seq = Extent::Symbol("SEQ");
  auto weight = [&](const char* name, int64_t n, int64_t k) { return b.Param(name, {weights, {n, k}}); };
  auto vector = [&](const char* name) { return b.Param(name, {DType::kF32, {2048}}); };
  const std::vector<hir::Value> results = b.Results("LlamaDecoderBlock",
                                                    {b.Input("x", {DType::kF32, {seq, 2048}}),
                                                     vector("attn_norm"),
                                                     {},
                                                     weight("q", 2048, 2048),
                                                     weight("k", 256, 2048),
                                                     weight("v", 256, 2048),
                                                     weight("o", 2048, 2048),
                                                     vector("ffn_norm"),
                                                     {},
                                                     weight("gate", 5632, 2048),
                                                     weight("up", 5632, 2048),
                                                     weight("down", 2048, 5632),
                                                     b.Input("cos", {DType::kF32, {seq, 32}}),
                                                     b.Input("sin", {DType::kF32, {seq, 32}}),
                                                     {},
                                                     b.Input("k_cache", {DType::kF16, {4096, 4, 64}}),
                                                     b.Input("v_cache", {DType::kF16, {4096, 4, 64}})},
                                                    {{"heads", int64_t{32}},
                                                     {"kv_heads", int64_t{4}},
                                                     {"head_dim", int64_t{64}},
                                                     {"rope_style", std::string("gptj")},
                                                     {"weight_layout", std::string("nk")}},
                                                    "layers.1");
  hir::LinearOptions nk;
  nk.weight_layout = "nk";
  const hir::Value norm = b.RmsNorm(results[0], vector("output_norm"), 1e-5);
  m.outputs = {b.Linear(norm, weight("output", 32000, 2048), nk), results[1], results[2]};
  m.donations = {{1, "k_cache"}, {2, "v_cache"}};
  EXPECT_TRUE(b.status().ok()) << b.status();
  return m;
}

void Count(DType weights, bool exact) {
  SCOPED_TRACE(absl::StrCat(Row(weights).name, exact ? " exact" : ""));
  compiler::PipelineOptions options;
  options.exact = exact;
  const StatusOr<ir::Graph> graph = compiler::PrepareGraph(Layer(weights), options);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const StatusOr<compiler::PlannedVariant> planned = compiler::PlanVariant(*graph, {{"SEQ", {1, 1}}}, options);
  ASSERT_TRUE(planned.ok()) << planned.status();
  const lir::Plan& plan = planned->plan;
  std::set<std::string> read;
  int attentions = 0;
  for (const lir::Launch& launch : plan.launches) {
    const kir::Kernel& kernel = plan.kernels[launch.kernel];
    bool reads_weights = false;
    for (const lir::Argument& argument : launch.arguments) {
      const lir::Buffer& buffer = plan.buffers[argument.buffer];
      if (buffer.home != lir::Home::kParam || buffer.type.dims.size() < 2) continue;
      reads_weights = true;
      read.insert(buffer.name);
    }
    attentions += kernel.name == "attention";
    if (!reads_weights && kernel.name != "attention") continue;
    const StatusOr<int64_t> chunks = kir::GridChunks(kernel, {{"SEQ", 1}, {"PAST_SEQ", kKeys - 1}});
    ASSERT_TRUE(chunks.ok()) << chunks.status();
    EXPECT_GE(*chunks, kThreads) << kir::Print(kernel);
    EXPECT_FALSE(kernel.sequential);
  }
  EXPECT_EQ(read.size(), 8u);
  EXPECT_EQ(attentions, 1);
}

TEST(Chunks, AStepOfOneTokenHasWorkForManyThreads) {
  for (const DType weights : {DType::kQ4_K, DType::kQ5_K, DType::kQ6_K, DType::kQ8_0, DType::kQ4_0, DType::kQ5_1,
                              DType::kQ2_K, DType::kIQ4_XS, DType::kIQ3_S, DType::kIQ1_S, DType::kF16}) {
    Count(weights, false);
    Count(weights, true);
  }
}

}  // namespace
}  // namespace quern
