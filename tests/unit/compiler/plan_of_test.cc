// What a graph's program will be, whether two graphs compute the same, and the clock.
#include "quern/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "quern/tick.h"

namespace quern {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two layers that use a tied weight, a cache, and sizes of which one is a sum.
Graph Layers() {
  Graph g("layers");
  g.Symbol("S", 1, 16);
  const Value x = g.Input("x", "f32[S, 32]"), cache = g.Input("cache", "f32[64, 32]");
  const Value tied = g.Param("embed", "q8_0[32, 32]");
  Value h = g.Op("MatMul", {x, tied}, {{"transpose_b", true}});
  for (const char* layer : {"layers.1", "layers.0"}) {
    const Value w = g.Param(std::string(layer) + ".ffn.w", "f32[32, 32]");
    const Value b = g.Param(std::string(layer) + ".ffn.b", "f32[32]");
    h = g.Op("Add", {g.Op("MatMul", {h, w}), b});
  }
  h = g.Op("MatMul", {h, tied}, {{"transpose_b", true}});
  g.Output("y", g.Op("Concat", {h, h}, {{"axis", 0}}));
  g.Carry("cache", g.Op("Update", {cache, h}, {{"axis", 0}, {"start", "0"}}));
  EXPECT_TRUE(g.status().ok()) << g.status().error();
  return g;
}

TEST(PlanOf, SaysWhatAProgramIsGiven) {
  Result<BindingManifest> plan = PlanOf(Layers());
  ASSERT_TRUE(plan.ok()) << plan.error();
  EXPECT_EQ(plan->fingerprint, *Layers().Fingerprint());
  ASSERT_EQ(plan->inputs.size(), 1u);
  EXPECT_THAT(plan->inputs[0].dims, ElementsAre("S", "32"));
  EXPECT_EQ(plan->inputs[0].bytes, "128*S");
  EXPECT_EQ(plan->inputs[0].home, "caller");
  ASSERT_EQ(plan->outputs.size(), 1u);
  EXPECT_EQ(plan->outputs[0].name, "y");
  EXPECT_THAT(plan->outputs[0].dims, ElementsAre("2*S", "32"));
  ASSERT_EQ(plan->states.size(), 1u);
  EXPECT_EQ(plan->states[0].name, "cache");
  EXPECT_EQ(plan->state_bytes, 64 * 32 * 4);
  EXPECT_THAT(plan->donations, ElementsAre(std::pair<std::string, int>("cache", 1)));
  // In order of first use; the tied one once.
  ASSERT_EQ(plan->weight_blocks.size(), 3u);
  EXPECT_EQ(plan->weight_blocks[0].prefix, "embed");
  EXPECT_EQ(plan->weight_blocks[0].bytes, 32 * 34);
  EXPECT_EQ(plan->weight_blocks[1].prefix, "layers.1");
  EXPECT_THAT(plan->weight_blocks[1].params, ElementsAre("layers.1.ffn.w", "layers.1.ffn.b"));
  EXPECT_EQ(plan->weight_blocks[2].prefix, "layers.0");
  EXPECT_EQ(plan->param_bytes, 32 * 34 + 2 * (32 * 32 + 32) * 4);
}

TEST(PlanOf, EstimatesEachVariant) {
  Graph g = Layers();
  Result<BindingManifest> plan = PlanOf(g);
  ASSERT_TRUE(plan.ok()) << plan.error();
  ASSERT_EQ(plan->variants.size(), 3u);
  EXPECT_EQ(plan->variants[0].guard, "S in 1..1");
  EXPECT_EQ(plan->variants[1].guard, "S in 2..8");
  EXPECT_EQ(plan->variants[2].guard, "");
  for (const VariantPlan& variant : plan->variants) {
    EXPECT_GT(variant.launches, 0);
    EXPECT_GT(variant.arena_most, 0);
    EXPECT_EQ(variant.ops.at("MatMul"), 2) << variant.guard;  // those of blocks are products of bytes
  }
  EXPECT_NE(plan->variants[0].key, plan->variants[1].key);
  EXPECT_EQ(plan->variants[0].key, PlanOf(Layers())->variants[0].key);
  EXPECT_NE(plan->variants[0].key, PlanOf(g, {.exact = true})->variants[0].key);
  // The estimate is what a program then holds.
  std::vector<std::vector<std::byte>> memory;
  Result<Program> program = g.Compile({.threads = 1, .cache = "off"});
  ASSERT_TRUE(program.ok()) << program.error();
  for (const BindingPort& param : plan->params) {
    const auto& bytes = memory.emplace_back(std::stoll(param.bytes));
    ASSERT_TRUE(program->Bind(param.name, bytes).ok());
  }
  std::vector<float> x(16 * 32), y(2 * 16 * 32);
  const Result<void> ran = program->Run({In("x", x, {16, 32})}, {Out("y", y, {32, 32})});
  ASSERT_TRUE(ran.ok()) << ran.error();
  EXPECT_EQ(program->counters().launches, plan->variants[2].launches);
  EXPECT_GE(program->counters().arena_bytes, plan->variants[2].arena_most);
  // Guards of the caller's are variants.
  g.Specialise("S", 16, 16);
  EXPECT_EQ(PlanOf(g)->variants[0].guard, "S in 16..16");
  const auto json = nlohmann::json::parse(plan->Json());
  EXPECT_EQ(json["variants"][1]["guard"], "S in 2..8");
  EXPECT_EQ(json["weight_blocks"][1]["prefix"], "layers.1");
  EXPECT_EQ(json["inputs"][0]["bytes"], "128*S");
}

TEST(Equivalent, FindsWhatDiffers) {
  const auto build = [](const char* act, bool spelled, const char* type = "f32[N, 5]") {
    Graph g("g");
    g.Symbol("N", 1, 100);
    const Value x = g.Input("x", type), w = g.Param("w", "f32[5, 7]");
    Value y = g.Op("MatMul", {x, w});
    if (spelled)
      y = g.Op("Mul", {y, g.Op("Sigmoid", {y})});
    else
      y = g.Op(act, {y});
    g.Output("y", y);
    return g;
  };
  Result<std::string> same = Equivalent(build("Silu", false), build("", true));
  ASSERT_TRUE(same.ok()) << same.error();
  EXPECT_EQ(*same, "");
  Result<std::string> other = Equivalent(build("Silu", false), build("Gelu", false));
  ASSERT_TRUE(other.ok()) << other.error();
  EXPECT_THAT(*other, HasSubstr("output y[0, 0] is "));
  EXPECT_THAT(*other, HasSubstr(" at N="));
  EXPECT_EQ(Equivalent(build("Silu", false), build("Silu", false, "f32[3, 5]")).code(), ErrorCode::kInvalid);
  Graph broken;
  broken.Op("MatMul", {broken.Input("x", "f32[2, 3]"), broken.Input("y", "f32[2, 3]")});
  EXPECT_EQ(Equivalent(broken, broken).code(), ErrorCode::kShapeMismatch);
}

TEST(Tick, AgreesWithTheSteadyClock) {
  const auto start = std::chrono::steady_clock::now();
  const Tick begin = Tick::Now();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const Tick end = Tick::Now();
  const double wanted = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  EXPECT_NEAR(Tick::Nanoseconds(begin, end) / wanted, 1, 0.01);
  EXPECT_LT(Tick::Nanoseconds(end, begin), 0);
}

}  // namespace
}  // namespace quern
