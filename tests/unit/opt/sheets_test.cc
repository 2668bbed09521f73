// Many elementwise nodes of one shape: which regions they become, and what keeps them apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "codegen/region.h"
#include "opt/fusion_report.h"
#include "opt/passes.h"
#include "support/wide_graph.h"

namespace quern::opt {
namespace {

using quern::testing::WideGraph;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Nodes of each region of the fused graph.
std::vector<size_t> Sizes(const std::string& text, FusionReport* report = nullptr,
                          const family::TargetFacts& facts = {}) {
  const StatusOr<ir::Graph> graph = ir::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  const StatusOr<ir::Graph> fused = FuseRegions(*graph, {.families = codegen::Families(), .facts = facts}, report);
  EXPECT_TRUE(fused.ok()) << fused.status();
  const Status verified = ir::Verify(*fused);
  EXPECT_TRUE(verified.ok()) << verified;
  std::vector<size_t> sizes;
  for (const ir::Node& node : fused->nodes()) {
    if (node.bodies.empty()) continue;
    sizes.push_back(0);
    for (const ir::Node& inner : node.body().nodes()) sizes.back() += IsLeaf(inner) ? 0 : 1;
  }
  return sizes;
}

// `count` nodes that read the one before and %from, from node `next` on.
std::string Chain(int next, int count, const std::string& op, int from, const std::string& dims) {
  std::string text;
  for (int i = 0; i < count; ++i)
    absl::StrAppend(&text, "  %", next + i, " = ", op, "(%", next + i - 1, ", %", from, ") : f32[", dims, "]\n");
  return text;
}

TEST(Sheets, ManyNodesAreOneRegion) {
  const std::vector<size_t> sizes = Sizes(WideGraph(1, {.nodes = 900}));
  ASSERT_EQ(sizes.size(), 1u);
  EXPECT_GT(sizes[0], 200u);
  // Blocks of threads have no strips to keep values in.
  family::TargetFacts facts;
  facts.blocks.emplace();
  for (const size_t size : Sizes(WideGraph(1, {.nodes = 900}), nullptr, facts)) EXPECT_LE(size, 128u);
}

TEST(Sheets, LongerOnesAreSeveral) {
  const std::string text = absl::StrCat("graph g {\n  %0 = Input() {name = \"x\"} : f32[40]\n",
                                        Chain(1, 7000, "Sub", 0, "40"), "  return %7000\n}");
  FusionReport report;
  EXPECT_THAT(Sizes(text, &report), ElementsAre(3500, 3500));
  ASSERT_FALSE(report.missed.empty());
  EXPECT_THAT(report.missed[0].reason,
              HasSubstr("both are long already, and a region has at most 6144 nodes and 512 buffers"));
}

TEST(Sheets, NoPathLeavesASheetAndComesBack) {
  const std::string text =
      absl::StrCat("graph g {\n  %0 = Input() {name = \"x\"} : f32[40, 40]\n", Chain(1, 99, "Sub", 0, "40, 40"),
                   "  %100 = Pad(%99) {high = [0, 1], low = [0, 0], value = 3.0} : f32[40, 41]\n",
                   "  %101 = Slice(%100) {axis = 1, start = 1, step = 1, stop = 41} : f32[40, 40]\n",
                   Chain(102, 99, "Max", 50, "40, 40"), Chain(201, 99, "Min", 99, "40, 40"), "  return %299\n}");
  EXPECT_THAT(Sizes(text), ElementsAre(99, 1, 199));
}

TEST(Sheets, WorkOncePerBindingStaysApart) {
  const std::string text =
      absl::StrCat("graph g {\n  %0 = Param() {name = \"w\"} : f32[40]\n", Chain(1, 300, "Sub", 0, "40"),
                   "  %301 = Input() {name = \"x\"} : f32[40]\n", "  %302 = Sub(%301, %300) : f32[40]\n",
                   Chain(303, 399, "Max", 300, "40"), "  return %701\n}");
  EXPECT_THAT(Sizes(text), ElementsAre(300, 400));
}

// What is cut for its buffers need not hang together: no node of the second half reads another.
TEST(Sheets, PiecesNeedNotTouch) {
  std::string text = "graph g {\n  %0 = Input() {name = \"x\"} : f32[40]\n" + Chain(1, 400, "Sub", 0, "40"), results;
  for (int n = 401; n <= 800; ++n) {
    absl::StrAppend(&text, "  %", n, " = Neg(%", n - 400, ") : f32[40]\n");
    absl::StrAppend(&results, n == 401 ? "%" : ", %", n - 400, ", %", n);
  }
  EXPECT_THAT(Sizes(text + "  return " + results + "\n}"), ElementsAre(400, 200, 200));
}

TEST(Sheets, AKernelHasNotTooManyBuffers) {
  std::string text =
      "graph g {\n  %0 = Input() {name = \"x\"} : f32[40]\n" + Chain(1, 600, "Sub", 0, "40") + "  return ";
  for (int n = 1; n <= 600; ++n) absl::StrAppend(&text, n == 1 ? "%" : ", %", n);
  FusionReport report;
  const std::vector<size_t> sizes = Sizes(text + "\n}", &report);
  EXPECT_GE(sizes.size(), 2u);
  for (const FusionReport::Region& region : report.regions) EXPECT_LE(region.inputs + region.outputs, 512);
  ASSERT_FALSE(report.missed.empty());
  EXPECT_THAT(report.missed[0].reason,
              HasSubstr("both are long already, and a region has at most 6144 nodes and 512 buffers"));
}

}  // namespace
}  // namespace quern::opt
