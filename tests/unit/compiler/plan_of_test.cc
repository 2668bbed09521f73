// What a graph's program will be, its variants when it is one, whether two graphs compute the same, and the clock.
#include "quern/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "quern/tick.h"

namespace quern {
namespace {

using ::testing::Contains;
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
    EXPECT_GT(variant.launches(), 0);
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
  EXPECT_EQ(program->counters().launches, plan->variants[2].launches());
  EXPECT_EQ(program->memory().arena_used, plan->variants[2].arena_most);
  // Guards of the caller's are variants.
  g.Specialise("S", 16, 16);
  EXPECT_EQ(PlanOf(g)->variants[0].guard, "S in 16..16");
  EXPECT_EQ(PlanOf(g)->variants[0].step, "inference");
  const auto json = nlohmann::json::parse(plan->Json());
  EXPECT_EQ(json["variants"][1]["guard"], "S in 2..8");
  EXPECT_EQ(json["weight_blocks"][1]["prefix"], "layers.1");
  EXPECT_EQ(json["inputs"][0]["bytes"], "128*S");
}

// What is said before compiling is what a program then holds, for two threads, at sizes of the caller's.
TEST(PlanOf, EstimatesMemoryThatIsHeld) {
  const Graph g = Layers();
  Result<BindingManifest> plan = PlanOf(g, {}, {{"S", 11}});
  ASSERT_TRUE(plan.ok()) << plan.error();
  EXPECT_EQ(plan->variants[0].sizes.at("S"), 1);
  EXPECT_EQ(plan->variants[1].sizes.at("S"), 8);
  EXPECT_EQ(plan->variants[2].sizes.at("S"), 11);
  EXPECT_EQ(PlanOf(g, {}, {{"T", 11}}).code(), ErrorCode::kUnknownName);
  Result<Program> program = g.Compile({.threads = 2, .cache = "off"});
  ASSERT_TRUE(program.ok()) << program.error();
  std::vector<std::vector<std::byte>> memory;
  for (const BindingPort& param : plan->params) {
    const auto& bytes = memory.emplace_back(std::stoll(param.bytes));
    ASSERT_TRUE(program->Bind(param.name, bytes).ok());
  }
  for (const int64_t rows : {1, 8, 11}) {
    std::vector<float> x(rows * 32), y(2 * rows * 32);
    const Result<void> ran = program->Run({In("x", x, {rows, 32})}, {Out("y", y, {2 * rows, 32})});
    ASSERT_TRUE(ran.ok()) << ran.error();
    EXPECT_EQ(program->memory().arena_used, plan->variants[rows == 1 ? 0 : rows == 8 ? 1 : 2].arena) << rows;
  }
  const MemoryEstimate estimate = plan->Memory(2);
  const Program::Memory held = program->memory();
  EXPECT_EQ(estimate.states, held.states);
  EXPECT_EQ(estimate.packed, held.packed);
  EXPECT_EQ(estimate.arena, held.arena);
  EXPECT_EQ(estimate.constants, held.constants);
  EXPECT_EQ(estimate.scratch, held.scratch);
  EXPECT_GT(held.code, 0);
}

// The largest sizes of all symbols together may be none that a run has.
TEST(PlanOf, TakesSizesThatGoTogether) {
  Graph g("step");
  g.Symbol("PAST_SEQ", 0, 63);
  g.Symbol("SEQ", 1, 16);
  const Value x = g.Input("x", "f32[SEQ, 8]");
  g.Carry("cache", g.Op("Update", {g.Input("cache", "f32[64, 8]"), x}, {{"axis", 0}, {"start", "PAST_SEQ"}}));
  g.Output("y", g.Op("Exp", {x}));
  Result<BindingManifest> plan = PlanOf(g);
  ASSERT_TRUE(plan.ok()) << plan.error();
  const std::map<std::string, int64_t>& sizes = plan->variants[0].sizes;
  EXPECT_LE(sizes.at("PAST_SEQ") + sizes.at("SEQ"), 64);
  EXPECT_TRUE(plan->variants[0].operations_known);
  plan = PlanOf(g, {}, {{"PAST_SEQ", 63}});
  ASSERT_TRUE(plan.ok()) << plan.error();
  EXPECT_EQ(plan->variants[0].sizes.at("SEQ"), 1);
}

TEST(PlanOf, HasPhasesAndStatistics) {
  Graph g("phases");
  g.Symbol("SEQ", 1, 32);
  const Value x = g.Input("x", "f32[SEQ, 48]"), cache = g.Input("cache", "f32[32, 48]");
  const Value w = g.Param("w", "f32[48, 80]");  // is packed once
  const Value h = g.Op("MatMul", {g.Op("Exp", {x}), w});
  g.Output("best", g.Op("ArgMax", {g.Op("CumSum", {h}, {{"axis", 1}})}, {{"axis", 1}}));
  g.Carry("cache", g.Op("Update", {cache, x}, {{"axis", 0}, {"start", "0"}}));
  Result<BindingManifest> plan = PlanOf(g);
  ASSERT_TRUE(plan.ok()) << plan.error();
  const VariantPlan& all = plan->variants.back();
  EXPECT_EQ(plan->variants[0].step, "decode");
  EXPECT_EQ(all.step, "prefill");
  ASSERT_EQ(all.phases.size(), 3u);
  EXPECT_EQ(all.phases[0].name, "prologue");
  EXPECT_EQ(all.phases[1].name, "steady");
  EXPECT_EQ(all.phases[2].name, "epilogue");
  EXPECT_THAT(all.phases[1].launches.back(), HasSubstr("MatMul"));
  EXPECT_THAT(all.phases[2].launches, Contains(HasSubstr("ArgMax")));
  // 2*32*48*80 of the product, and what Exp and the sums have.
  EXPECT_GE(all.operations, 2.0 * 32 * 48 * 80);
  EXPECT_LE(all.operations, 2.5 * 32 * 48 * 80);
  EXPECT_GE(all.read, 4.0 * (32 * 48 + 48 * 80));
  EXPECT_THAT(plan->Text(), HasSubstr("epilogue, "));
  EXPECT_EQ(nlohmann::json::parse(plan->Json())["variants"][0]["step"], "decode");
  // The fingerprint of a program: its graph, what it is compiled for, and which variants.
  EXPECT_EQ(plan->program, PlanOf(g)->program);
  EXPECT_NE(plan->program, PlanOf(g, {.exact = true})->program);
  EXPECT_NE(plan->program, PlanOf(g, {.cpu = "x86-64-v2"})->program);
  g.Specialise("SEQ", 16, 16);
  EXPECT_NE(plan->program, PlanOf(g)->program);
}

TEST(PlanOf, Differences) {
  const auto build = [](const char* act, const char* input, bool two) {
    Graph g("g");
    g.Symbol("N", 1, 100);
    const Value x = g.Input(input, "f32[N, 5]");
    Value y = g.Op(act, {g.Op("MatMul", {x, g.Param("w", two ? "f32[5, 9]" : "f32[5, 7]")})}, {}, two ? "b" : "a");
    g.Output("y", two ? g.Op("CumSum", {y}, {{"axis", 1}}, "sums") : y);
    return *PlanOf(g);
  };
  const BindingManifest silu = build("Silu", "x", false);
  EXPECT_EQ(Diff(silu, build("Silu", "x", false)), "");
  const std::string renamed = Diff(silu, build("Silu", "z", false));
  EXPECT_THAT(renamed, HasSubstr("- input x  f32[N, 5]\n+ input z  f32[N, 5]\n"));
  EXPECT_EQ(Diff(silu, build("Silu", "z", false), {.names = false}), "");
  const std::string more = Diff(silu, build("Silu", "x", true));
  EXPECT_THAT(more, HasSubstr("~ output y  f32[N, 9]  was y  f32[N, 7]\n"));
  EXPECT_THAT(more, HasSubstr("~ parameter w  f32[5, 9]  was w  f32[5, 7]\n"));
  EXPECT_THAT(more, HasSubstr("~ variant all other sizes\n"));
  EXPECT_THAT(more, HasSubstr("  ~ launches 2  was 1\n"));
  EXPECT_THAT(more, HasSubstr("sums: CumSum\n"));
  EXPECT_THAT(Diff(silu, build("Relu", "x", false)), HasSubstr("  - op Silu 1\n"));
}

// Variants come when they are asked for, and go with their code when nobody uses them.
TEST(Variants, ArePrecompiledAndDropped) {
  Graph g = Layers();
  g.Specialise("S", 3, 3);
  g.Specialise("S", 9, 16);
  Result<Program> program = g.Compile({.threads = 1, .cache = "off"});
  ASSERT_TRUE(program.ok()) << program.error();
  std::vector<std::vector<std::byte>> memory;
  for (const TensorInfo& param : program->params())
    ASSERT_TRUE(program
                    ->Bind(param.name, memory.emplace_back(param.name == "embed"     ? 32 * 34
                                                           : param.type == "f32[32]" ? 128
                                                                                     : 4096))
                    .ok());
  Result<BindingManifest> plan = PlanOf(g);
  ASSERT_TRUE(plan.ok()) << plan.error();
  const auto compiled = [&] {
    std::vector<std::string> guards;
    for (const Program::VariantInfo& variant : program->Variants()) {
      if (variant.compiled) guards.push_back(variant.guard);
    }
    return guards;
  };
  EXPECT_THAT(compiled(), ElementsAre());
  ASSERT_EQ(program->Variants().size(), 3u);
  for (size_t v = 0; v < 3; ++v) EXPECT_EQ(program->Variants()[v].key, plan->variants[v].key);
  ASSERT_TRUE(program->Precompile({{"S", 3}}).ok());
  ASSERT_TRUE(program->Precompile({{"S", 12}}).ok());
  EXPECT_EQ(program->Precompile({{"S", 17}}).code(), ErrorCode::kOutOfRange);
  EXPECT_EQ(program->Precompile({}).code(), ErrorCode::kMissing);
  EXPECT_THAT(compiled(), ElementsAre("S in 3..3", "S in 9..16"));
  const int before = program->counters().kernels;
  const auto run = [&](int64_t rows) {
    std::vector<float> x(rows * 32, 0.5f), y(2 * rows * 32);
    const Result<void> ran = program->Run({In("x", x, {rows, 32})}, {Out("y", y, {2 * rows, 32})});
    EXPECT_TRUE(ran.ok()) << ran.error();
    return y;
  };
  const std::vector<float> first = run(12);
  run(3);
  EXPECT_EQ(program->counters().kernels, before) << "runs compile nothing";
  EXPECT_EQ(program->Variants()[0].runs, 1);
  EXPECT_GT(program->Variants()[0].code_bytes, 0);
  // Both were used: nothing goes, and counting begins anew.
  EXPECT_EQ(*program->DropUnused(), 0);
  EXPECT_EQ(program->Variants()[0].runs, 0);
  const Program::Memory all = program->memory();
  EXPECT_GT(all.arena, 0);
  run(3);
  EXPECT_EQ(*program->DropUnused(), 1);
  EXPECT_THAT(compiled(), ElementsAre("S in 3..3"));
  EXPECT_LT(program->memory().code, all.code);
  EXPECT_EQ(program->memory().arena, 0);
  EXPECT_EQ(program->counters().variants, 1);
  // What was dropped comes back, and computes the same; so does what stayed, in an arena of another size.
  run(3);
  program->ResetState();
  EXPECT_EQ(run(12), first);
  run(3);
  EXPECT_THAT(compiled(), ElementsAre("S in 3..3", "S in 9..16"));
  EXPECT_EQ(*program->DropUnused(), 0);
  EXPECT_EQ(*program->DropUnused(), 2);
  EXPECT_EQ(program->memory().code, 0);
  EXPECT_EQ(program->memory().packed, 0);
}

// What was packed of parameters that were given back cannot be made again: it stays.
TEST(Variants, KeepWhatWasReleased) {
  Graph g("released");
  g.Symbol("N", 1, 64);
  g.Output("y", g.Op("MatMul", {g.Input("x", "f32[N, 40]"), g.Param("w", "f32[40, 56]")}));
  g.Specialise("N", 1, 64);
  Result<Program> program = g.Compile({.threads = 1, .cache = "off"});
  ASSERT_TRUE(program.ok()) << program.error();
  std::vector<float> w(40 * 56, 0.25f);
  bool released = false;
  ASSERT_TRUE(program->Bind("w", std::as_bytes(std::span(w)), [&] { released = true; }).ok());
  const auto run = [&] {
    std::vector<float> x(9 * 40, 1.0f), y(9 * 56);
    const Result<void> ran = program->Run({In("x", x, {9, 40})}, {Out("y", y, {9, 56})});
    EXPECT_TRUE(ran.ok()) << ran.error();
    return y;
  };
  const std::vector<float> first = run();
  ASSERT_TRUE(released) << "the test is of weights that are packed";
  EXPECT_EQ(PlanOf(g)->packed_bytes, program->memory().packed);
  EXPECT_EQ(program->Variants()[0].packed_bytes, program->memory().packed);
  std::fill(w.begin(), w.end(), 7.0f);
  ASSERT_TRUE(program->DropUnused().ok());  // that of other sizes, which nobody has asked for
  EXPECT_EQ(*program->DropUnused(), 1);
  EXPECT_GT(program->memory().packed, 0);
  EXPECT_EQ(run(), first);
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

// Whatever else the machine does: the time between two readings lies between what the steady clock says inside and
// outside of them.
TEST(Tick, AgreesWithTheSteadyClock) {
  const auto now = [] {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  Tick::Nanoseconds(Tick::Now(), Tick::Now());
  const double before = now();
  const Tick begin = Tick::Now();
  const double after = now();
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  const double sooner = now();
  const Tick end = Tick::Now();
  const double later = now();
  EXPECT_GE(Tick::Nanoseconds(begin, end), (sooner - after) * 0.999);
  EXPECT_LE(Tick::Nanoseconds(begin, end), (later - before) * 1.001);
  EXPECT_LT(Tick::Nanoseconds(end, begin), 0);
}

}  // namespace
}  // namespace quern
