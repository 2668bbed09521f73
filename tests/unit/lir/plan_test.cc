// Plans of small fused graphs: homes, views, in-place updates, merged kernels, and a verifier that bites.
#include "lir/plan.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace quern::lir {
namespace {

Plan MakePlan(std::string_view text, SymbolRanges ranges = {}) {
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  StatusOr<Plan> plan = BuildPlan(*graph, ranges, {});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : Plan{};
}

int Count(const Plan& plan, Home home) {
  int count = 0;
  for (const Buffer& buffer : plan.buffers) count += buffer.home == home;
  return count;
}

// A region that applies `op` to one value.
std::string Unary(int n, const std::string& from, const std::string& op, const std::string& type,
                  const std::string& symbols = "") {
  return "  %" + std::to_string(n) + " = Region(" + from + ") {family = \"map\"} : " + type + " body graph body" +
         symbols + " {\n    %0 = Input() {name = \"a\"} : " + type + "\n    %1 = " + op + "(%0) : " + type +
         "\n    return %1\n  }\n";
}

TEST(Plan, AChainTakesTurnsInTheArenaAndEndsInTheCallersMemory) {
  std::string text = "graph g {\n  %0 = Input() {name = \"x\"} : f32[7, 13]\n";
  for (int n = 1; n <= 5; ++n) text += Unary(n, "%" + std::to_string(n - 1), "Silu", "f32[7, 13]");
  const Plan plan = MakePlan(text + "  return %5\n}");
  EXPECT_EQ(plan.launches.size(), 5u);
  EXPECT_EQ(Count(plan, Home::kArena), 4);
  EXPECT_EQ(Count(plan, Home::kOutput), 1);
  EXPECT_EQ(plan.arena_bytes, Extent(2 * 384));  // 364 bytes each, two live at a time
  // The caller's memory promises less alignment, so first and last kernels differ from the three between.
  EXPECT_EQ(plan.kernels.size(), 3u);
  EXPECT_NE(Print(plan).find("launch 4"), std::string::npos);
}

TEST(Plan, ViewsAreOffsets) {
  const std::string symbols = " sym S in 2..9";
  const Plan plan = MakePlan("graph g" + symbols + " {\n  %0 = Input() {name = \"x\"} : f32[S, 4, 8]\n" +
                             Unary(1, "%0", "Silu", "f32[S, 4, 8]", symbols) +
                             "  %2 = Narrow(%1) {axis = 0, length = <2>, start = <S - 2>} : f32[2, 4, 8]\n"
                             "  %3 = Reshape(%2) {shape = <2, 32>} : f32[2, 32]\n" +
                             Unary(4, "%3", "Exp", "f32[2, 32]") + "  return %4\n}");
  ASSERT_EQ(plan.launches.size(), 2u);
  const Argument& view =
      plan.launches[1].arguments[0].offset == Extent(0) ? plan.launches[1].arguments[1] : plan.launches[1].arguments[0];
  EXPECT_EQ(view.offset, Extent::Symbol("S") * Extent(128) - Extent(256));
  EXPECT_EQ(view.buffer, plan.launches[0].arguments[1].buffer);
}

constexpr std::string_view kCache = R"(graph g sym P in 0..53 {
  %0 = Input() {name = "x"} : f32[1, 16]
  %1 = Input() {name = "cache"} : f32[50, 16]
  %2 = Region(%1, %0) {family = "update"} : f32[50, 16] body graph body sym P in 0..53 {
    %0 = Input() {name = "c"} : f32[50, 16]
    %1 = Input() {name = "u"} : f32[1, 16]
    %2 = Update(%0, %1) {axis = 0, start = <P>} : f32[50, 16]
    return %2
  }
  %3 = Narrow(%2) {axis = 0, length = <1>, start = <P>} : f32[1, 16]
  %4 = Region(%3) {family = "map"} : f32[1, 16] body graph body {
    %0 = Input() {name = "a"} : f32[1, 16]
    %1 = Neg(%0) : f32[1, 16]
    return %1
  }
  return %4, %2
  donate "cache" -> 1
})";

TEST(Plan, DonatedInputsAreWrittenInPlace) {
  SymbolRanges ranges = {{"P", {0, 49}}};
  const StatusOr<ir::Graph> graph = ir::Parse(kCache);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const StatusOr<Plan> plan = BuildPlan(*graph, ranges, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->launches.size(), 2u);
  EXPECT_EQ(Count(*plan, Home::kState), 1);
  EXPECT_EQ(Count(*plan, Home::kArena), 0);
  EXPECT_TRUE(plan->requirements.empty());
}

TEST(Plan, AReadAfterTheOverwriteIsRefused) {
  std::string text(kCache);
  text.replace(text.find("Narrow(%2)"), 10, "Narrow(%1)");
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const StatusOr<Plan> plan = BuildPlan(*graph, {{"P", {0, 49}}}, {});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().message(), "the donated input cache is read after it is overwritten");
}

TEST(Plan, OutputsThatNoRegionWritesAreCopied) {
  const Plan plan =
      MakePlan("graph g {\n  %0 = Input() {name = \"x\"} : f32[3, 5]\n" + Unary(1, "%0", "Neg", "f32[3, 5]") +
               "  %2 = Reshape(%1) {shape = <15>} : f32[15]\n  return %2, %1, %0\n}");
  // Output 0 is the region's memory; outputs 1 and 2 are copies.
  EXPECT_EQ(plan.launches.size(), 3u);
  EXPECT_EQ(Count(plan, Home::kOutput), 3);
}

TEST(Plan, ParameterOnlyWorkRunsOnce) {
  const Plan plan =
      MakePlan("graph g {\n  %0 = Param() {name = \"w\"} : f32[11, 3]\n" + Unary(1, "%0", "Exp", "f32[11, 3]") +
               Unary(2, "%1", "Neg", "f32[11, 3]") + "  return %2\n}");
  EXPECT_EQ(plan.once.size(), 2u);
  EXPECT_EQ(plan.launches.size(), 1u);  // the copy into the caller's memory
  EXPECT_EQ(plan.once_bytes, Extent(2 * 192));
}

TEST(Plan, EqualRegionsAreOneKernel) {
  std::string text = "graph g {\n  %0 = Input() {name = \"x\"} : f32[17]\n" + Unary(1, "%0", "Tanh", "f32[17]");
  for (int n = 2; n <= 6; ++n) text += Unary(n, "%" + std::to_string(n - 1), "Tanh", "f32[17]");
  const Plan plan = MakePlan(text + Unary(7, "%6", "Tanh", "f32[17]") + "  return %7\n}");
  EXPECT_EQ(plan.launches.size(), 7u);
  EXPECT_EQ(plan.kernels.size(), 3u);
}

// Each breach of a good plan is found.
// The same body over memory that it may overwrite, and over memory that is the caller's.
TEST(Plan, EqualRegionsOverOtherKindsOfMemoryAreLoweredApart) {
  const auto update = [](int n, const std::string& cache) {
    return "  %" + std::to_string(n) + " = Region(" + cache +
           ", %0) {family = \"update\"} : f32[50, 16] body graph body sym P in 0..49 {\n"
           "    %0 = Input() {name = \"c\"} : f32[50, 16]\n    %1 = Input() {name = \"u\"} : f32[1, 16]\n"
           "    %2 = Update(%0, %1) {axis = 0, start = <P>} : f32[50, 16]\n    return %2\n  }\n";
  };
  const std::string head = R"(graph g sym P in 0..49 {
  %0 = Input() {name = "x"} : f32[1, 16]
  %1 = Input() {name = "cache"} : f32[50, 16]
  %2 = Input() {name = "kept"} : f32[50, 16]
)";
  for (const bool donated_first : {false, true}) {
    const Plan plan = MakePlan(head + update(3, donated_first ? "%1" : "%2") + update(4, donated_first ? "%2" : "%1") +
                               "  return %3, %4\n  donate \"cache\" -> " + (donated_first ? "0" : "1") + "\n}");
    // In place where the memory is ours; the caller's is read and left alone.
    std::map<std::string, std::vector<kir::Mode>> modes;
    for (const Launch& launch : plan.launches) {
      for (size_t p = 0; p < launch.arguments.size(); ++p) {
        modes[plan.buffers[launch.arguments[p].buffer].name].push_back(plan.kernels[launch.kernel].params[p].mode);
      }
    }
    EXPECT_EQ(modes["cache"], std::vector{kir::Mode::kInOut});
    EXPECT_FALSE(modes["kept"].empty());
    for (const kir::Mode mode : modes["kept"]) EXPECT_EQ(mode, kir::Mode::kIn);
  }
}

TEST(VerifyPlan, FindsWhatWouldGoWrong) {
  std::string text = "graph g {\n  %0 = Input() {name = \"x\"} : f32[7, 13]\n";
  for (int n = 1; n <= 4; ++n) text += Unary(n, "%" + std::to_string(n - 1), "Silu", "f32[7, 13]");
  const Plan good = MakePlan(text + "  return %4\n}");
  ASSERT_TRUE(Verify(good).ok());
  std::vector<int> arena;
  for (size_t b = 0; b < good.buffers.size(); ++b) {
    if (good.buffers[b].home == Home::kArena) arena.push_back(static_cast<int>(b));
  }
  ASSERT_EQ(arena.size(), 3u);
  const auto broken = [&](auto&& change) {
    Plan plan = good;
    change(plan);
    return std::string(Verify(plan).message());
  };
  const auto says = [](const std::string& message, std::string_view words) {
    return message.find(words) != std::string::npos;
  };
  EXPECT_TRUE(says(broken([&](Plan& p) { p.buffers[arena[1]].offset = p.buffers[arena[0]].offset; }), "share memory"));
  // The last bytes of the one are the first of the other.
  EXPECT_TRUE(says(broken([&](Plan& p) {
                     p.buffers[arena[1]].offset = p.buffers[arena[0]].offset + Extent(320);
                     p.buffers[arena[2]].offset = 2048;
                     p.arena_bytes = 4096;
                   }),
                   "share memory"));
  EXPECT_TRUE(
      says(broken([&](Plan& p) { p.buffers[arena[0]].offset = p.buffers[arena[0]].offset + Extent(4); }), "aligned"));
  EXPECT_TRUE(says(broken([&](Plan& p) { p.arena_bytes = 64; }), "does not lie in the arena"));
  EXPECT_TRUE(says(broken([&](Plan& p) { std::swap(p.launches[0], p.launches[1]); }), "before it is written"));
  EXPECT_TRUE(says(broken([&](Plan& p) { p.launches[1].arguments.pop_back(); }), "arguments"));
  EXPECT_TRUE(says(broken([&](Plan& p) { p.launches[1].arguments[0].offset = 4; }), "alignment"));
  EXPECT_TRUE(
      says(broken([&](Plan& p) { p.launches[1].arguments[1] = p.launches[1].arguments[0]; }), "another argument"));
  EXPECT_TRUE(says(broken([&](Plan& p) { p.buffers[arena[0]].bytes = 8; }), "bytes"));
}

TEST(Plan, AlignmentOfAnOffset) {
  EXPECT_EQ(AlignmentOf(Extent(0), 64), 64);
  EXPECT_EQ(AlignmentOf(Extent(96), 64), 32);
  EXPECT_EQ(AlignmentOf(Extent::Symbol("S") * Extent(24) + Extent(64), 64), 8);
  EXPECT_EQ(AlignmentOf(Extent::Symbol("S") * Extent(256) - Extent(256), 64), 64);
}

}  // namespace
}  // namespace quern::lir
