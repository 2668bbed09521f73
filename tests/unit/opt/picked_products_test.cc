// Rows sorted by the matrix that they pick: what the graph becomes, and that it still says the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_replace.h"
#include "ir/interpret.h"
#include "opt/passes.h"
#include "support/random_graph.h"

namespace quern::opt {
namespace {

// One layer of experts as a model has it, after expansion: gate and up of a repeated row, then down.
constexpr char kExperts[] = R"(graph g sym S in $low..$high {
  %0 = Input() {name = "x"} : f32[S, 256]
  %1 = Input() {name = "which"} : i32[2*S]
  %2 = Param() {name = "gate"} : $w[5, 256, 256]
  %3 = Param() {name = "up"} : $w[5, 256, 256]
  %4 = Param() {name = "down"} : $w[5, 48, 256]
  %5 = Reshape(%0) {shape = <S, 1, 256>} : f32[S, 1, 256]
  %6 = Expand(%5) {shape = <S, 2, 256>} : f32[S, 2, 256]
  %7 = Reshape(%6) {shape = <2*S, 1, 256>} : f32[2*S, 1, 256]
  %8 = Gather(%2, %1) {axis = 0} : $g[2*S, 256, 256]
  %9 = MatMul(%7, %8) {transpose_b = true} : f32[2*S, 1, 256]
  %10 = Gather(%3, %1) {axis = 0} : $g[2*S, 256, 256]
  %11 = MatMul(%7, %10) {transpose_b = true} : f32[2*S, 1, 256]
  %12 = Abs(%9) : f32[2*S, 1, 256]
  %13 = Mul(%12, %11) : f32[2*S, 1, 256]
  %14 = Gather(%4, %1) {axis = 0} : $g[2*S, 48, 256]
  %15 = MatMul(%13, %14) {transpose_b = true} : f32[2*S, 1, 48]
  %16 = Reshape(%15) {shape = <2*S, 48>} : f32[2*S, 48]
  return %16
}
)";

ir::Graph Experts(const std::string& weights, const char* low, const char* high) {
  const bool blocks = weights.starts_with("q");  // whose rows are read as f32
  StatusOr<ir::Graph> graph = ir::Parse(absl::StrReplaceAll(
      kExperts, {{"$w", weights}, {"$g", blocks ? "f32" : weights}, {"$low", low}, {"$high", high}}));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

int Count(const ir::Graph& graph, std::string_view op) {
  return static_cast<int>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                        [&](const ir::Node& node) { return node.op->name == op; }));
}

ir::Graph Pass(const ir::Graph& graph, bool exact) {
  StatusOr<ir::Graph> made = MakePickedProducts(graph, {.exact = exact});
  EXPECT_TRUE(made.ok()) << made.status();
  const Status verified = ir::Verify(*made);
  EXPECT_TRUE(verified.ok()) << verified;
  return *std::move(made);
}

// The three products share one order; between them rows stay in it.
TEST(PickedProducts, OneOrderForAnExpert) {
  const ir::Graph made = Pass(Experts("f32", "9", "60"), true);
  EXPECT_EQ(Count(made, "PickedMatMul"), 3) << ir::Print(made);
  EXPECT_EQ(Count(made, "MatMul"), 0);
  EXPECT_EQ(Count(made, "Sort"), 1);
  EXPECT_EQ(Count(made, "Gather"), 3) << "the numbers of matrices, the rows in, the rows out";
  EXPECT_EQ(Count(made, "Quantize"), 0);
  EXPECT_EQ(Count(Pass(Experts("q4_K", "9", "60"), false), "Quantize"), 2) << "of the rows in, and of those between";
}

TEST(PickedProducts, FewRowsStayAsTheyAre) {
  const ir::Graph made = Pass(Experts("f32", "8", "60"), true);
  EXPECT_EQ(Count(made, "PickedMatMul"), 3) << ir::Print(made);
  EXPECT_EQ(Count(made, "Sort"), 0);
  EXPECT_EQ(Count(made, "Gather"), 0);
}

// By the double interpreter; indices from the end and outside too, and matrices that no row names.
TEST(PickedProducts, MeanTheSame) {
  for (const char* const weights : {"f32", "bf16", "q8_0", "q6_K"}) {
    for (const bool exact : {true, false}) {
      SCOPED_TRACE(weights);
      for (const char* const least : {"8", "9"}) {
        const ir::Graph graph = Experts(weights, least, "60"), made = Pass(graph, exact);
        const Binding sizes = {{"S", 13}};
        const ir::Feeds feeds = testing::RandomFeeds(graph, sizes, 7);
        const auto want = ir::Interpret(graph, sizes, feeds), got = ir::Interpret(made, sizes, feeds);
        ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
        const std::vector<double>&a = (*want)[0].data, &b = (*got)[0].data;
        ASSERT_EQ(a.size(), b.size());
        double worst = 0, largest = 0;
        for (size_t i = 0; i < a.size(); ++i) {
          worst = std::max(worst, std::fabs(a[i] - b[i]));
          largest = std::max(largest, std::fabs(a[i]));
        }
        EXPECT_LE(worst, (exact || !std::string_view(weights).starts_with("q") ? 1e-12 : 3e-2) * largest);
        EXPECT_GT(largest, 0);
      }
    }
  }
}

}  // namespace
}  // namespace quern::opt
