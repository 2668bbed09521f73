// Random graphs: what the passes make of them means the same, verifies, and is wholly in regions.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "codegen/region.h"
#include "ir/interpret.h"
#include "opt/passes.h"
#include "opt/rewriter.h"
#include "support/random_graph.h"

namespace quern::opt {
namespace {

using testing::MakeRandomGraph;
using testing::RandomFeeds;
using testing::RandomGraph;

constexpr uint64_t kSeeds = 400;

StatusOr<std::vector<ir::RefTensor>> Evaluate(const ir::Graph& graph, const RandomGraph& random, uint64_t seed) {
  return ir::Interpret(graph, random.binding, RandomFeeds(random.graph, random.binding, seed));
}

// Bit for bit: passes before and after fusion leave every double operation as it is. NaN equals NaN.
void ExpectSame(const std::vector<ir::RefTensor>& a, const std::vector<ir::RefTensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t o = 0; o < a.size(); ++o) {
    ASSERT_EQ(a[o].dims, b[o].dims);
    ASSERT_EQ(a[o].dtype, b[o].dtype);
    ASSERT_EQ(a[o].integers, b[o].integers) << "output " << o;
    for (size_t i = 0; i < a[o].data.size(); ++i) {
      const double x = a[o].data[i], y = b[o].data[i];
      ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y)))
          << "output " << o << " element " << i << ": " << x << " and " << y;
    }
  }
}

// The text's lines, in no order: what sizes must be stands as it was found, by passes or by who reads the text.
std::multiset<std::string> LinesOf(const ir::Graph& graph) {
  const std::vector<std::string> lines = absl::StrSplit(ir::Print(graph), '\n');
  return {lines.begin(), lines.end()};
}

TEST(RandomGraphs, FusedMeansTheSame) {
  std::set<std::string> ops, families;
  int regions = 0, several = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const RandomGraph random = MakeRandomGraph(seed, {.calls = true});
    StatusOr<ir::Graph> graph = ExpandComposites(random.graph);
    ASSERT_TRUE(graph.ok()) << graph.status();
    FusionReport report;
    const StatusOr<ir::Graph> fused = FuseRegions(*graph, {.families = codegen::Families()}, &report);
    ASSERT_TRUE(fused.ok()) << fused.status() << ir::Print(*graph);
    const Status verified = ir::Verify(*fused);
    ASSERT_TRUE(verified.ok()) << verified << ir::Print(*fused);
    for (const ir::Node& node : fused->nodes()) {
      ASSERT_TRUE(IsLeaf(node) || !node.bodies.empty() || ir::ViewStart(*fused, node))
          << node.op->name << ir::Print(*fused);
      if (!ir::IsRegion(node)) continue;
      ++regions;
      int inner_ops = 0;
      families.insert(node.attributes.String("family"));
      for (const ir::Node& inner : node.body().nodes()) {
        ops.insert(inner.op->name);
        inner_ops += !IsLeaf(inner);
      }
      several += inner_ops > 1;
    }
    const auto expected = Evaluate(*graph, random, seed), actual = Evaluate(*fused, random, seed);
    ASSERT_TRUE(expected.ok()) << expected.status() << ir::Print(*graph);
    ASSERT_TRUE(actual.ok()) << actual.status() << ir::Print(*fused);
    ExpectSame(*expected, *actual);
    if (HasFatalFailure()) {
      ADD_FAILURE() << ir::Print(*graph) << ir::Print(*fused);
      return;
    }
    // The text of a fused graph is the whole graph.
    const StatusOr<ir::Graph> again = ir::Parse(ir::Print(*fused));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(LinesOf(*again), LinesOf(*fused));
  }
  // The generator reaches every elementwise op, and fusion every family it can reach.
  for (const ir::OpDef* op : ir::Ops()) {
    if (op->kind == ir::OpKind::kElementwise) EXPECT_TRUE(ops.contains(op->name)) << op->name;
  }
  EXPECT_EQ(families, (std::set<std::string>{"attention", "call", "delta_rule", "lines", "map", "matmul",
                                             "selective_scan", "sort", "triangular_solve", "update"}));
  EXPECT_GT(several * 3, regions);
}

TEST(RandomGraphs, PassesMeanTheSame) {
  struct Row {
    const char* name;
    StatusOr<ir::Graph> (*pass)(const ir::Graph&);
  };
  constexpr Row kPasses[] = {{"simplify", Simplify},
                             {"cse", Cse},
                             {"hoist_weights", [](const ir::Graph& graph) { return HoistWeights(graph); }},
                             {"short_sums", ShortSums},
                             {"dce", Dce}};
  for (uint64_t seed = 1001; seed <= 1000 + kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const RandomGraph random = MakeRandomGraph(seed, {.calls = true});
    StatusOr<ir::Graph> graph = ExpandComposites(random.graph);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto expected = Evaluate(*graph, random, seed);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (const Row& row : kPasses) {
      SCOPED_TRACE(row.name);
      StatusOr<ir::Graph> next = row.pass(*graph);
      ASSERT_TRUE(next.ok()) << next.status() << ir::Print(*graph);
      ASSERT_TRUE(ir::Verify(*next).ok()) << ir::Verify(*next) << ir::Print(*next);
      const auto actual = Evaluate(*next, random, seed);
      ASSERT_TRUE(actual.ok()) << actual.status() << ir::Print(*graph) << ir::Print(*next);
      ExpectSame(*expected, *actual);
      if (HasFatalFailure()) {
        ADD_FAILURE() << ir::Print(*graph) << ir::Print(*next);
        return;
      }
      graph = *std::move(next);
    }
  }
}

TEST(RandomGraphs, SubstitutedMeansTheSame) {
  for (uint64_t seed = 2001; seed <= 2000 + kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const RandomGraph random = MakeRandomGraph(seed, {.calls = true});
    StatusOr<ir::Graph> graph = ExpandComposites(random.graph);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const StatusOr<ir::Graph> fused = FuseRegions(*graph, {.families = codegen::Families()});
    ASSERT_TRUE(fused.ok()) << fused.status();
    const auto expected = Evaluate(*graph, random, seed);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (const ir::Graph* from : {static_cast<const ir::Graph*>(&*graph), &*fused}) {
      const StatusOr<ir::Graph> fixed = SubstituteSymbols(*from, random.binding);
      ASSERT_TRUE(fixed.ok()) << fixed.status() << ir::Print(*from);
      EXPECT_TRUE(fixed->symbols.empty());
      ASSERT_TRUE(ir::Verify(*fixed).ok()) << ir::Verify(*fixed);
      const auto actual = Evaluate(*fixed, random, seed);
      ASSERT_TRUE(actual.ok()) << actual.status();
      ExpectSame(*expected, *actual);
    }
  }
}

TEST(RandomGraphs, FoldedConstantsAreClose) {
  for (uint64_t seed = 3001; seed <= 3000 + kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    // Folding rounds to f32 where the interpreter keeps doubles; ops that jump would show it.
    const RandomGraph random = MakeRandomGraph(seed, {.discontinuous = false, .calls = true});
    const StatusOr<ir::Graph> graph = ExpandComposites(random.graph);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const StatusOr<ir::Graph> folded = FoldConstants(*graph);
    ASSERT_TRUE(folded.ok()) << folded.status();
    const auto expected = Evaluate(*graph, random, seed), actual = Evaluate(*folded, random, seed);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_TRUE(actual.ok()) << actual.status();
    for (size_t o = 0; o < expected->size(); ++o) {
      for (size_t i = 0; i < (*expected)[o].data.size(); ++i) {
        const double x = (*expected)[o].data[i], y = (*actual)[o].data[i];
        if (std::isfinite(x)) ASSERT_NEAR(x, y, 1e-2 * std::max(1.0, std::fabs(x)));
      }
    }
  }
}

}  // namespace
}  // namespace quern::opt
