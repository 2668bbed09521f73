// Reproductions made smaller while something stays true of them.
#include "check/reduce.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "check/edit_graph.h"
#include "check/value.h"
#include "unit/check/watched_graph.h"

namespace quern::testing {
namespace {

using check::Reproduction;

std::multiset<std::string> Ops(const ir::Graph& graph) {
  std::multiset<std::string> ops;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op->kind != ir::OpKind::kLeaf) ops.insert(node.op->name);
  }
  return ops;
}

Reproduction FromRandom(uint64_t seed, int nodes) {
  RandomGraph random =
      MakeRandomGraph(seed, {.nodes = nodes, .discontinuous = false, .updates = false, .blocks = false});
  Reproduction made;
  made.sizes = random.binding;
  made.bytes = RandomBytes(random.graph, random.binding, seed);
  made.graph = std::move(random.graph);
  return made;
}

// The first seed whose graph has both ops.
Reproduction WithOps(int nodes, const char* one, const char* other, uint64_t& seed) {
  for (;; ++seed) {
    Reproduction made = FromRandom(seed, nodes);
    const std::multiset<std::string> ops = Ops(made.graph);
    if (ops.contains(one) && ops.contains(other)) return made;
  }
}

TEST(Reduce, KeepsTheTwoOpsThatMatter) {
  for (uint64_t seed = 1, round = 0; round < 4; ++round, ++seed) {
    const Reproduction start = WithOps(36, "Exp", "MatMul", seed);
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    ASSERT_TRUE(check::Check(start).ok()) << check::Check(start);
    EXPECT_GE(start.graph.nodes().size(), 36u);
    int calls = 0;
    const auto fails = [&](const Reproduction& candidate) {
      ++calls;
      EXPECT_TRUE(check::Check(candidate).ok());
      const std::multiset<std::string> ops = Ops(candidate.graph);
      return ops.contains("Exp") && ops.contains("MatMul");
    };
    const Reproduction reduced = check::Reduce(start, fails, {.attempts = 3000});
    EXPECT_LE(calls, 3000);
    EXPECT_TRUE(fails(reduced));
    EXPECT_LE(Ops(reduced.graph).size(), 3u) << ir::Print(reduced.graph);
    EXPECT_LE(reduced.bytes.size(), 4u) << ir::Print(reduced.graph);
    size_t bytes = 0;
    for (const auto& [name, value] : reduced.bytes) bytes += value.size();
    EXPECT_LE(bytes, 512u) << ir::Print(reduced.graph);
    // The same again, step by step.
    EXPECT_EQ(check::PrintText(check::Reduce(start, fails, {.attempts = 3000}), "a", "b"),
              check::PrintText(reduced, "a", "b"));
  }
}

// A value decides, so what is cut off has to be replaced by what it was.
TEST(Reduce, KeepsTheValuesThatMatter) {
  Reproduction start;
  start.graph = *ir::Parse(R"(graph g sym S in 1..64 {
  %0 = Input() {name = "x"} : f32[S, 24]
  %1 = Input() {name = "y"} : f32[S, 24]
  %2 = Exp(%0) : f32[S, 24]
  %3 = Mul(%2, %1) : f32[S, 24]
  %4 = Neg(%3) : f32[S, 24]
  %5 = Log(%4) : f32[S, 24]
  %6 = Tanh(%5) : f32[S, 24]
  %7 = Add(%6, %0) : f32[S, 24]
  return %7, %3
})");
  start.sizes = {{"S", 48}};
  start.bytes = RandomBytes(start.graph, start.sizes, 3);
  // Fails as long as some Log is taken of something negative.
  const auto fails = [](const Reproduction& candidate) {
    const StatusOr<ir::Feeds> feeds = check::FeedsOf(candidate.graph, candidate.sizes, candidate.bytes);
    const StatusOr<check::Evaluation> values = check::Evaluate(candidate.graph, candidate.sizes, *feeds);
    for (int n = 0; n < static_cast<int>(candidate.graph.nodes().size()); ++n) {
      if (std::string_view(candidate.graph.node(n).op->name) != "Log") continue;
      const std::vector<double>& log = values->At({n, 0}).data;
      if (std::any_of(log.begin(), log.end(), [](double v) { return std::isnan(v); })) return true;
    }
    return false;
  };
  ASSERT_TRUE(fails(start));
  const Reproduction reduced = check::Reduce(start, fails, {});
  EXPECT_TRUE(fails(reduced));
  EXPECT_EQ(Ops(reduced.graph), (std::multiset<std::string>{"Log"})) << ir::Print(reduced.graph);
  EXPECT_EQ(reduced.bytes.size(), 1u);
  EXPECT_LE(reduced.bytes.begin()->second.size(), 64u) << ir::Print(reduced.graph);
}

TEST(Reduce, StopsAfterItsAttempts) {
  int calls = 0;
  const Reproduction reduced =
      check::Reduce(FromRandom(5, 30), [&](const Reproduction&) { return ++calls, true; }, {.attempts = 3});
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(check::Check(reduced).ok());
}

// A NaN that was computed is no input of a smaller graph: what reads it would be found in the place of what made it.
TEST(EditGraph, NoNanBecomesAnInput) {
  Reproduction made;
  made.graph = *ir::Parse(R"(graph g {
  %0 = Input() {name = "x"} : f32[3]
  %1 = Log(%0) : f32[3]
  %2 = Tanh(%1) : f32[3]
  return %2
})");
  const auto fed = [&](const std::vector<double>& x) {
    made.bytes["x"] = *check::Encode({DType::kF32, {3}, x});
    const ir::Feeds feeds = *check::FeedsOf(made.graph, {}, made.bytes);
    const check::Evaluation values = *check::Evaluate(made.graph, {}, feeds);
    return check::ApplyCut(made, {{{2, 0}}, {}, {{1, 0}}}, &values).status();
  };
  EXPECT_TRUE(fed({1, 2, 3}).ok());
  EXPECT_TRUE(fed({1, 0, 3}).ok());  // an infinity may be one
  EXPECT_FALSE(fed({1, -2, 3}).ok());
  EXPECT_TRUE(fed({1, NAN, 3}).ok());  // one was there already
}

TEST(Shrink, KeepsTheFirstElements) {
  Reproduction made;
  made.graph = *ir::Parse(R"(graph g sym S in 1..9 {
  %0 = Input() {name = "x"} : f32[S, 5]
  %1 = Transpose(%0) {perm = [1, 0]} : f32[5, S]
  return %1
})");
  made.sizes = {{"S", 3}};
  made.bytes["x"] = *check::Encode({DType::kF32, {15}, {0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24}});
  const auto rows = check::Shrink(made, "S", 2);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->bytes.at("x"), *check::Encode({DType::kF32, {10}, {0, 1, 2, 3, 4, 10, 11, 12, 13, 14}}));
  const auto columns = check::Shrink(*rows, 5, 2);
  ASSERT_TRUE(columns.ok()) << columns.status();
  EXPECT_EQ(columns->bytes.at("x"), *check::Encode({DType::kF32, {4}, {0, 1, 10, 11}}));
}

}  // namespace
}  // namespace quern::testing
