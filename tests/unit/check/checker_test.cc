// Kernels broken on purpose, one of each family: the check names the op, its block and the element, and what it writes
// passes again with healthy kernels.
#include "check/checker.h"

#include <cmath>
#include <cstring>

#include "unit/check/watched_graph.h"

namespace quern::testing {
namespace {

using check::Finding;
using check::Kind;

struct FamilyCase {
  const char* name;
  const char* text;
  Binding sizes;
  const char* label;  // in the label of the fused kernel
  int64_t element;
  // What is found with that kernel broken alone.
  const char* op;
  const char* block;
  std::vector<int64_t> index;
  // The op inside of it whose own kernel is broken as well; null: the region has one op.
  const char* inner;
  const char* inner_op;
};

const FamilyCase kCases[] = {
    {"map",
     R"(graph g sym S in 1..40 {
  %0 = Input() {name = "x"} : f32[S, 13]
  %1 = Param() {name = "w"} : f32[13]
  %2 = Mul(%0, %1) : f32[S, 13]  @"first/scale"
  %3 = Tanh(%2) : f32[S, 13]  @"first/act"
  %4 = Add(%3, %0) : f32[S, 13]  @"first/sum"
  return %4
})",
     {{"S", 7}},
     "first/sum",
     30,
     "Add",
     "first/sum",
     {2, 4},
     "first/act",
     "Tanh"},
    {"reduce",
     R"(graph g sym S in 1..40 {
  %0 = Input() {name = "x"} : f32[S, 37]
  %1 = Mul(%0, %0) : f32[S, 37]  @"norm"
  %2 = Reduce(%1) {axes = [1], keep_dim = true, op = "sum"} : f32[S, 1]  @"norm/sum"
  %3 = Mul(%2, %0) : f32[S, 37]  @"norm/scaled"
  return %3
})",
     {{"S", 5}},
     "norm/scaled",
     40,
     "Mul",
     "norm/scaled",
     {1, 3},
     nullptr,
     nullptr},
    {"matmul",
     R"(graph g sym S in 1..40 {
  %0 = Input() {name = "x"} : f32[S, 64]
  %1 = Param() {name = "w"} : f32[48, 64]
  %2 = Param() {name = "b"} : f32[48]
  %3 = MatMul(%0, %1) {transpose_b = true} : f32[S, 48]  @"layers.3/ffn/up"
  %4 = Add(%3, %2) : f32[S, 48]  @"layers.3/ffn/bias"
  %5 = Silu(%4) : f32[S, 48]  @"layers.3/ffn/act"
  return %5
})",
     {{"S", 9}},
     "layers.3/ffn/act",
     50,
     "Silu",
     "layers.3/ffn/act",
     {1, 2},
     "layers.3/ffn/bias",
     "Add"},
    {"attention",
     R"(graph g sym S in 1..40 {
  %0 = Input() {name = "q"} : f32[1, S, 32]
  %1 = Input() {name = "k"} : f32[1, S, 16]
  %2 = Input() {name = "v"} : f32[1, S, 16]
  %3 = Attention(%0, %1, %2) {head_dim = 8, heads = 4, kv_heads = 2, layout = "packed", mask = "causal"} : f32[1, S, 32]
      @"layers.0/attention"
  return %3
})",
     {{"S", 11}},
     "layers.0/attention",
     70,
     "Attention",
     "layers.0/attention",
     {0, 2, 6},
     nullptr,
     nullptr},
    {"update",
     R"(graph g sym S in 1..8 {
  %0 = Input() {name = "cache"} : f32[24, 16]
  %1 = Input() {name = "x"} : f32[S, 16]
  %2 = Update(%0, %1) {axis = 0, start = <5>} : f32[24, 16]  @"layers.1/cache"
  return %2
  donate "cache" -> 0
})",
     {{"S", 3}},
     "Input",
     6 * 16 + 1,
     "Update",
     "layers.1/cache",
     {6, 1},
     nullptr,
     nullptr},
};

class EachFamily : public ::testing::TestWithParam<FamilyCase> {};

TEST_P(EachFamily, HealthyKernelsPass) {
  WatchedGraph graph(GetParam().text, GetParam().sizes);
  for (const Kind kind : {Kind::kRef, Kind::kNan}) {
    const WatchedRun run = graph.Run(kind);
    EXPECT_TRUE(run.status.ok()) << run.status;
    EXPECT_GT(run.counts.regions, 0);
    EXPECT_GT(run.counts.elements, 0);
  }
}

TEST_P(EachFamily, AWrongElementIsNamed) {
  const FamilyCase& c = GetParam();
  const std::string folder = FreshFolder(c.name);
  WatchedGraph graph(c.text, c.sizes);
  // The fused kernel alone: its single ops are right.
  const std::vector<Fault> faults = {{c.label, c.element, 1234, true}};
  const WatchedRun run = graph.Run(Kind::kRef, faults, folder);
  ASSERT_TRUE(run.finding.has_value()) << run.status << lir::Print(graph.plan());
  EXPECT_EQ(run.status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(run.status.message(), run.finding->ToString());
  const Finding& found = *run.finding;
  SCOPED_TRACE(found.ToString());
  EXPECT_EQ(found.op, c.op);
  EXPECT_EQ(found.block, c.block);
  EXPECT_EQ(found.index, c.index);
  EXPECT_EQ(found.fused, found.ops.size() > 1);
  EXPECT_EQ(found.got, 1234);
  EXPECT_LT(std::fabs(found.expected), 1000);
  EXPECT_LT(found.allowed, 1);
  EXPECT_FALSE(found.kernels.empty());
  EXPECT_FALSE(found.operands.empty());
  EXPECT_EQ(found.wrong, 1);
  EXPECT_NE(found.reproduction.find(folder), std::string::npos);
  EXPECT_FALSE(graph.ReplayHealthy(found).has_value());
}

class OpsInside : public EachFamily {};

TEST_P(OpsInside, AreNamedWhenTheirOwnKernelIsWrong) {
  const FamilyCase& c = GetParam();
  WatchedGraph graph(c.text, c.sizes);
  const WatchedRun run = graph.Run(Kind::kRef, {{c.label, c.element, 1234, true}, {c.inner, 3, 99}});
  ASSERT_TRUE(run.finding.has_value()) << run.status;
  SCOPED_TRACE(run.finding->ToString());
  EXPECT_EQ(run.finding->op, c.inner_op);
  EXPECT_EQ(run.finding->block, c.inner);
  EXPECT_FALSE(run.finding->fused);
  EXPECT_EQ(run.finding->index, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(run.finding->got, 99);
  // An elementwise op says what went into the element.
  ASSERT_FALSE(run.finding->operands.empty());
  EXPECT_NE(run.finding->operands[0].find("[0, 3] = "), std::string::npos);
}

// Weights alone: work that is done when they are bound.
TEST(Checker, LooksAtParameterOnlyWork) {
  WatchedGraph graph(R"(graph g {
  %0 = Param() {name = "w"} : f32[7, 5]
  %1 = Input() {name = "x"} : f32[3, 5]
  %2 = Transpose(%0) {perm = [1, 0]} : f32[5, 7]  @"weights"
  %3 = MatMul(%1, %2) : f32[3, 7]  @"product"
  return %3
})");
  ASSERT_EQ(graph.plan().once.size(), 1u) << lir::Print(graph.plan());
  EXPECT_EQ(graph.Run(Kind::kRef).counts.regions, 2);
  const WatchedRun run = graph.Run(Kind::kRef, {{"weights", 8, 77}});
  ASSERT_TRUE(run.finding.has_value()) << run.status;
  EXPECT_EQ(run.finding->op, "Transpose") << run.finding->ToString();
  EXPECT_EQ(run.finding->index, (std::vector<int64_t>{1, 1}));
}

// What an op overwrites in place is looked at as it was.
TEST(Checker, SeesStateAsItWas) {
  WatchedGraph graph(R"(graph g {
  %0 = Input() {name = "cache"} : f32[8, 16]
  %1 = Input() {name = "x"} : f32[2, 16]
  %2 = Add(%1, %1) : f32[2, 16]  @"double"
  %3 = Update(%0, %2) {axis = 0, start = <3>} : f32[8, 16]  @"cache"
  %4 = Neg(%3) : f32[8, 16]  @"read"
  return %3, %4
  donate "cache" -> 0
})");
  const WatchedRun run = graph.Run(Kind::kRef);
  EXPECT_TRUE(run.status.ok()) << run.status;
  EXPECT_GE(run.counts.regions, 2);
}

INSTANTIATE_TEST_SUITE_P(Of, OpsInside, ::testing::Values(kCases[0], kCases[2]),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Of, EachFamily, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace quern::testing
