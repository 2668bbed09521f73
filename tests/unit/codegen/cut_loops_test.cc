// Long loops cut by the registers: what they compute, where they are cut, and what stays whole.
#include "codegen/cut_loops.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "codegen/choose_cuts.h"
#include "support/wide_graph.h"
#include "unit/codegen/region_check.h"

namespace quern::codegen {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

kir::Kernel Cut(const std::string& text, const family::TargetFacts& facts = {}) {
  const StatusOr<kir::Kernel> kernel = kir::ParseKernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  kir::Kernel cut = CutLoops(*kernel, facts);
  const Status verified = kir::Verify(cut);
  EXPECT_TRUE(verified.ok()) << verified << "\n" << kir::Print(cut);
  return cut;
}

// tanh of tanh of ...
std::string Nested(int depth, std::string value) {
  for (int i = 0; i < depth; ++i) value = absl::StrCat("tanh(", value, ")");
  return value;
}

std::string Chain(const std::string& high, const std::string& symbols = "", int depth = 40) {
  return absl::StrCat("kernel chain (\n  x : f64[", high, "] in\n  y : f64[", high, "] out\n) ", symbols,
                      " {\n  grid g in 0..1 {\n    vec c in 0..", high, " { y[c] = ", Nested(depth, "x[c]"),
                      " }\n  }\n}");
}

// Runs a kernel of f64 buffers of `count` elements, the last of which is its result.
std::vector<double> ResultOf(const kir::Kernel& kernel, size_t count, const Binding& binding) {
  std::vector<std::vector<uint8_t>> memory(kernel.params.size());
  std::vector<kir::BufferBytes> buffers;
  for (std::vector<uint8_t>& bytes : memory) {
    for (size_t i = 0; i < count; ++i) Append(bytes, std::sin(static_cast<double>(i)));
    buffers.emplace_back(bytes);
  }
  const Status run = kir::Interpret(kernel, binding, buffers);
  EXPECT_TRUE(run.ok()) << run << "\n" << kir::Print(kernel);
  std::vector<double> result(count);
  std::memcpy(result.data(), memory.back().data(), count * sizeof(double));
  return result;
}

TEST(CutLoops, ComputesTheSameForEveryExtent) {
  const std::string text = Chain("S", "sym S in 0..9000");
  const kir::Kernel whole = *kir::ParseKernel(text), cut = Cut(text);
  EXPECT_THAT(kir::Print(cut), HasSubstr("alloc keep0 : f64[1024]"));
  for (const int64_t size : {0, 1, 15, 16, 17, 1023, 1024, 1025, 2048, 5000}) {
    SCOPED_TRACE(size);
    EXPECT_EQ(ResultOf(cut, size, {{"S", size}}), ResultOf(whole, size, {{"S", size}}));
  }
}

// A longer chain is no longer text: its loops are in a loop around them.
TEST(CutLoops, LoopsThatComeAgainAreWrittenOnce) {
  const std::string text = Chain("S", "sym S in 0..9000", 170);
  const kir::Kernel whole = *kir::ParseKernel(text), cut = Cut(text);
  const std::string printed = kir::Print(cut);
  EXPECT_THAT(printed, HasSubstr("for again0 in 1.."));
  EXPECT_LT(std::count(printed.begin(), printed.end(), '\n'), 60) << printed;
  for (const int64_t size : {1, 1024, 1025}) {
    SCOPED_TRACE(size);
    EXPECT_EQ(ResultOf(cut, size, {{"S", size}}), ResultOf(whole, size, {{"S", size}}));
  }
}

// The kernel of the one region of a graph.
std::string KernelText(const std::string& text) {
  const StatusOr<ir::Graph> fused = opt::FuseRegions(*ir::Parse(text), {.families = Families()});
  EXPECT_TRUE(fused.ok()) << fused.status();
  for (const ir::Node& node : fused->nodes()) {
    if (node.bodies.empty()) continue;
    const auto lowered = LowerRegion(family::MemoryOf(*fused), node, fused->symbols, {});
    EXPECT_TRUE(lowered.ok()) << lowered.status();
    if (lowered.ok()) return kir::Print(lowered->kernels[0].kernel);
  }
  return "";
}

// Graphs of every dtype, broadcast operands and several results, beside the double interpreter.
TEST(CutLoops, WideGraphs) {
  using quern::testing::WideGraph;
  using quern::testing::WideGraphOptions;
  int seed = 0;
  for (const char* const dims : {"64", "255", "256", "257", "1100", "3, 700", "2, 3, 300"}) {
    const std::string text = WideGraph(++seed, {.symbols = "", .dims = dims, .row = "1"});
    SCOPED_TRACE(text);
    CheckFused(text, {}, 2e-3, kCpu);
    EXPECT_THAT(KernelText(text), HasSubstr("keep1"));
  }
  for (const int64_t size : {1, 64, 4097}) {
    const std::string text =
        WideGraph(++seed, {.nodes = 200, .symbols = "sym S in 1..9000", .dims = "2, S", .row = "S"});
    SCOPED_TRACE(text);
    CheckFused(text, {{"S", size}}, 2e-3, kCpu);
  }
}

TEST(CutLoops, ShortBodiesAndShortLoopsStayWhole) {
  const std::string few =
      "kernel k (\n  x : f32[4096] in\n  y : f32[4096] out\n) {\n  grid g in 0..1 {\n"
      "    vec c in 0..4096 { y[c] = " +
      Nested(2, "x[c]") + " }\n  }\n}";
  EXPECT_THAT(kir::Print(Cut(few)), Not(HasSubstr("keep")));
  EXPECT_THAT(kir::Print(Cut(Chain("63"))), Not(HasSubstr("keep")));
  // What a row keeps is as long as the row.
  EXPECT_THAT(kir::Print(Cut(Chain("64"))), HasSubstr("alloc keep0 : f64[64]"));
}

// In a loop that reads what it writes, a later loop would read it changed.
TEST(CutLoops, WhatIsReadAndWrittenStaysWhole) {
  const std::string text = absl::StrCat(
      "kernel k (\n  x : f32[4096] inout\n  y : f32[4096] out\n) {\n  grid g in 0..1 {\n    vec c in 0..4096 {\n"
      "      y[c] = ",
      Nested(40, "x[c]"), "\n      x[c] = ", Nested(3, "x[c]"), "\n    }\n  }\n}");
  EXPECT_THAT(kir::Print(Cut(text)), Not(HasSubstr("keep")));
}

// A sum and the product that it may contract are one instruction or two, whatever is cut around them.
TEST(CutLoops, ContractedProductsStayBesideTheirSums) {
  const std::string text = absl::StrCat(
      "kernel k (\n  x : f32[4096] in\n  y : f32[4096] out\n) {\n  grid g in 0..1 {\n    vec c in 0..4096 {\n"
      "      y[c] = contract(tanh(x[c]) * tanh(x[c] + 1) + ",
      Nested(40, "tanh(x[c]) * tanh(x[c] + 1)"), ")\n    }\n  }\n}");
  const std::string cut = kir::Print(Cut(text));
  EXPECT_THAT(cut, ContainsRegex("y.c. = contract.keep[0-9].c - p0. [*] keep[0-9].c - p0. [+] "));
}

// That a divisor is not 0 is seen where it is guarded.
TEST(CutLoops, DivisorsStayBesideTheirGuards) {
  const std::string divisor = "select(d[c] + d[c] == 0, 1, d[c] + d[c])";
  const std::string text = absl::StrCat(
      "kernel k (\n  d : i32[4096] in\n  y : i32[4096] out\n) {\n  grid g in 0..1 {\n    vec c in 0..4096 { y[c] = "
      "cast<i32>(",
      Nested(40, absl::StrCat("cast<f32>(d[c] / ", divisor, ")")), ") / ", divisor, " }\n  }\n}");
  EXPECT_THAT(kir::Print(Cut(text)), HasSubstr("keep"));
}

// Of what differs between no two rounds, of plain elements and of their conversions nothing is kept.
TEST(CutLoops, WhatIsReadAgainForLittleIsNotKept) {
  const std::string text = absl::StrCat(
      "kernel k (\n  x : f16[4096] in\n  s : f32[1] in\n  y : f32[4096] out\n) {\n  grid g in 0..1 {\n"
      "    vec c in 0..4096 { y[c] = cast<f32>(x[c]) * sqrt(s[0]) * ",
      Nested(40, "cast<f32>(x[c]) + sqrt(s[0])"), " }\n  }\n}");
  EXPECT_THAT(kir::Print(Cut(text)), AllOf(HasSubstr("alloc keep1 : f32[2048]"), Not(HasSubstr("keep2"))));
}

// A chain of steps that each wait for the one before: several loops, each of steps in a row.
TEST(ChooseCuts, ChainsAreCut) {
  std::vector<BodyStep> steps(30, {.work = 20, .latency = 60});
  for (int s = 1; s < 30; ++s) steps[s].operands = {s - 1};
  const std::vector<std::vector<int>> parts = ChooseCuts(steps, {});
  EXPECT_GE(parts.size(), 5u);
  int next = 0;
  for (const std::vector<int>& part : parts) {
    for (const int step : part) EXPECT_EQ(step, next++);
  }
  EXPECT_EQ(next, 30);
  // Short loops pay their start and end with each part.
  EXPECT_LT(ChooseCuts(steps, {.rounds = 0.5}).size(), parts.size());
}

// What fits the window is one loop, in the order given.
TEST(ChooseCuts, ShortBodiesAreOneLoop) {
  EXPECT_THAT(ChooseCuts(std::vector<BodyStep>{{}, {.operands = {0}}, {.operands = {0, 1}}}, {}),
              ElementsAre(ElementsAre(0, 1, 2)));
}

// Two chains that meet at the end: a cut through one of them keeps one value, a cut through both keeps two.
TEST(ChooseCuts, FewValuesCrossACut) {
  std::vector<BodyStep> steps;
  for (int s = 0; s < 60; ++s) {  // in turns
    steps.push_back({.work = 20, .latency = 60});
    if (s >= 2) steps.back().operands = {s - 2};
  }
  steps.push_back({.operands = {58, 59}});
  std::vector<int> place(steps.size()), part_of(steps.size());
  int at = 0, number = 0;
  for (const std::vector<int>& part : ChooseCuts(steps, {})) {
    for (const int step : part) {
      place[step] = at++;
      part_of[step] = number;
    }
    ++number;
  }
  ASSERT_EQ(at, static_cast<int>(steps.size()));
  int crossing = 0;
  for (size_t s = 0; s < steps.size(); ++s) {
    for (const int operand : steps[s].operands) {
      EXPECT_LT(place[operand], place[s]);
      crossing += part_of[operand] != part_of[s] ? 1 : 0;
    }
  }
  EXPECT_GT(number, 4);
  EXPECT_LE(crossing, 2 * number);
}

}  // namespace
}  // namespace quern::codegen
